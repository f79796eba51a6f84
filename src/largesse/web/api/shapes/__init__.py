"""The JSON of the API: what bodies are read into, and what answers are made of.

A file for each room below that it speaks for. The rooms know nothing of it: they get and give plain values, and name what is
wrong by the names of their own.
"""
