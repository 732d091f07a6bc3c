"""Find where columns lie and how wide they are, privately and without bounds."""
