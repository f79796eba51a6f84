"""Personal data of recipients: export, erasure, and automatic erasure after the retention period."""
