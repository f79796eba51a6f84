"""`largesse verify`: audits the ledger, balances, orders, codes, chains, reports and rights."""
