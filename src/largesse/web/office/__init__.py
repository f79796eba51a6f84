"""The back office at `/office`, for the staff of the company that runs the installation. It shares the parts of the web application, and works without JavaScript.

`routes` lists every path with the right that it needs. `guard` checks each request against the table. The back office does not exist until
somebody is invited.
"""
