"""Declared tables: find out what columns are, cut numbers, learn all columns together, release."""
