"""What one role does, the shared retrieval node, and the door to language models."""
