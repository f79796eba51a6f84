"""Events for webhooks, and the changes of orders that reports read.

To add an event, declare its type and payload in a module and list it in `kinds`.
"""
