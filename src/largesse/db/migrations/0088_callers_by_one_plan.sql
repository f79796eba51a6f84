-- The plan of a look-up of keys is reused. Making it for each look-up took longer than running it. It uses indexes, also if it was made while the tables were small.
ALTER FUNCTION callers(bytea[], text) SET plan_cache_mode = force_generic_plan SET enable_seqscan = off;
