"""Speaks with the services over HTTP."""

from urllib.request import ProxyHandler, build_opener

DIRECT = build_opener(ProxyHandler({}))
"""The services are on this machine: no proxy has a part in that."""
