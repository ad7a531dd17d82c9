/* Made by seal_vectors.py; never edited by hand. */
#pragma once
/* clang-format off */
static const char v_master[] =
	"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
static const char v_data_key[] =
	"6465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f80818283";
static const char v_data_key_id[] =
	"0193abcdef0100010203040506070809";
static const char v_account[] =
	"0193abcdef0032333435363738393a3b";
static const char v_wrapped[] =
	"0101020304c8c9cacbcccdcecfd0d1d2d37d19d1a892d11442738f70663dbff108a624083622c85d"
	"1a1d5f86e14f4192ad82d722444f0d148eeb5c2b8fb621c236";
static const char v_value_usual[] =
	"010193abcdc8c9cacbcccdcecfd0d1d2d38756fdfa7251a68eaa065a661872e571dfa3f5a2d50837"
	"39980fbb5c85c927";
static const char v_value_empty[] =
	"010193abcdc8c9cacbcccdcecfd0d1d2d32c9bd7e7a51833be5af45a4cd8dcac02";
static const char v_value_large[] =
	"010193abcdc8c9cacbcccdcecfd0d1d2d3cc45bba62d01fe9ba81d5a661834fdd864053f079a4dab"
	"43e0e227378d106dd779426c17ce7c06df49af2feaf12091f7eeae39b06ce8ae73cb4adb662152fd"
	"c8db2b77e394295d1f395ecbe3ede760202d1c9bb24f483239a900d94b102fbf5690b0f7dac52f7b"
	"3135600ffc9eb357c1dd3c5c43a2a90755855849c7e31e2d8804461d90b658f51ab5a2baa7460155"
	"56";
static const char v_hmac_idempotency[] =
	"7810df867be27a28770d8fc69cc99795f560eb49a6ff99751dfbfd45d2a6af43";
static const char v_hmac_fingerprint[] =
	"4e62e8ef25e34ebb199c00ba6988215c4dafb3e8ba987941731fa331cd352f17";
static const char v_hmac_address[] =
	"79e62b7f98e2ff17ef7f28ea66dc52840f9d36b8932222ff9597a067ddbac61f";
static const char v_result_public[] =
	"81a4eb9f3c25ce4dacf64d82ea3c28db33720f282a9e444e6640b9c3e8172c02";
static const char v_result_job[] =
	"000102030405060708090a0b0c0d0e0f";
static const char v_result_token_id[] =
	"101112131415161718191a1b1c1d1e1f";
static const char v_result[] =
	"0107a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7cc8c9cacbcccdce"
	"cfd0d1d2d3a7738c9de6f012db33177315dfb25a7ed9ba81a3a32283";
static const char v_result_forged[] =
	"010000000000000000000000000000000000000000000000000000000000000000c8c9cacbcccdce"
	"cfd0d1d2d30b11eb75b7a760436cf291b57f86cba7f2fe282fa89c7f";
/* clang-format on */
