-- What an account pays at a provider, as the provider itself told it: a JSON object of name and dollars.

ALTER TABLE provider_key
	ADD COLUMN IF NOT EXISTS rates TEXT,
	ADD COLUMN IF NOT EXISTS rates_at BIGINT;
