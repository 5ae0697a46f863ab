"""Unit tests open no sockets."""

import pytest
from pytest_socket import disable_socket, enable_socket


@pytest.fixture(autouse=True)
def _no_network():
    # asyncio needs its own socket pair; those are Unix sockets.
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()
