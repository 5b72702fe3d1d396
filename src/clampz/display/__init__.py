"""Formatting of numbers and names, HTML of notebooks and pages, and hooks from results to their pictures."""
