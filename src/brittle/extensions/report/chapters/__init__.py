"""The chapters of the page, one file and one template each."""
