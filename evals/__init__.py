"""Evaluation: readers of data sets, metrics, the runner, reports."""
