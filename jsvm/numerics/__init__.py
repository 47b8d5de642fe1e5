"""Loops, places and linear systems inside compiled programs."""
