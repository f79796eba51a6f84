"""The back office at `/office`, for the staff of the company that runs the installation. It is made of the parts of the web application, and works without script.

`routes` lists every address with the right that it needs; `guard` checks each request against the table. There is no back office until
somebody was invited.
"""
