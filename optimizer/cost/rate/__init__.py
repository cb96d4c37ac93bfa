"""Output rates: how many results a plan has made by each time (Viglas, Naughton 2002).

`judge.py` compares plans, by the exact model (`exact.py`) or by the printed one (`printed.py`).
"""
