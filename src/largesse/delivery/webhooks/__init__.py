"""Webhooks: subscriptions, the targets they may name, and the delivery of events to them.

subscriptions.py  who hears of which event; targets.py, addresses.py and resolver.py judge where that may be
fan_out.py        deliveries are made of events; queues.py leases them, a subscription's queue at a time
delivery.py       the worker's side: turns of queues, attempts in flight
transport.py      POSTs over judged connections (channel.py), signed by signing.py
outcomes.py       what a receiver's answer means; recording.py writes it down
records.py        what a customer is told of deliveries, redelivery, samples; throttle.py how often
maintenance.py    what is old, and what waits; resealing.py brings secrets under the newest master key
erasing.py        takes an address out of what receivers answered
"""
