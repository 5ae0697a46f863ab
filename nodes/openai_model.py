"""Chat models behind the OpenAI API, as the model door needs them: replies as they came."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI

from nodes.retries import NoCompletionError


class PlainChatOpenAI(ChatOpenAI):
    """`ChatOpenAI` that raises the client's own errors and keeps what a reasoning parser split off.

    The parent warns on refused response formats, and trips over replies that are no completions.
    """

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        payload = self._get_request_payload(messages, stop=stop, **kwargs)
        if self._use_responses_api(payload):
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        payload.pop("stream", None)
        try:
            completion = await self.async_client.create(**payload)
        except ValueError as error:  # broken JSON or encoding
            raise NoCompletionError("sent a broken reply", passing=True) from error
        if isinstance(completion, str):
            raise NoCompletionError(completion or "sent an empty reply", passing=False)
        choices = getattr(completion, "choices", None)
        if not choices:
            told = getattr(completion, "error", None)
            words = told.get("message") if isinstance(told, dict) else told
            # An empty list is a hiccup; no list at all is another kind of server.
            passing = choices is not None or told is not None
            raise NoCompletionError(str(words or "sent no chat completion"), passing=passing)
        try:
            result = self._create_chat_result(completion)
            self._keep_reasoning(result, completion)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise NoCompletionError("sent no chat completion", passing=False) from error
        return result

    @staticmethod
    def _keep_reasoning(result: ChatResult, completion: Any) -> None:
        """Keep the reasoning of a reply that has no other content.

        Servers with a reasoning parser put all of a reply there when its block never closes.
        """
        message = completion.choices[0].message
        for name in ("reasoning_content", "reasoning"):
            text = getattr(message, name, None)
            if isinstance(text, str) and text:
                result.generations[0].message.additional_kwargs["reasoning_content"] = text
                return
