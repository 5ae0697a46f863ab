"""One LangGraph state machine a method."""
