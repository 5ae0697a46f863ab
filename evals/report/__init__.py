"""Reports on runs: tables, comparisons, plots, one page with every question, a CSV file."""
