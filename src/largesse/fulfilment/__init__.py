"""What happens after a claim: vouchers from stock, parcels to addresses, and the mails about both."""
