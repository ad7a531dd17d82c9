/* The rows of the test build: names and contents are the suite's. */
#include "fixture.h"

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define TEXT(name)         "\"" name "\":{\"type\":\"string\"}"

/* One red point. */
#define PNG                                                                                        \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5"  \
	"ErkJggg=="
/* No sample at all. */
#define WAV   "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"

#define ELICIT(key_, text, properties, required)                                                   \
	{                                                                                          \
		.key = (key_), .method = "elicitation/create", .capability = "elicitation",        \
		.params =                                                                          \
			"{\"mode\":\"form\",\"message\":\"" text                                   \
			"\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" properties  \
			"},\"required\":[\"" required "\"]}}"                                      \
	}
#define SAMPLE(key_, text)                                                                         \
	{                                                                                          \
		.key = (key_), .method = "sampling/createMessage", .capability = "sampling",       \
		.params = "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","      \
			  "\"text\":\"" text "\"}}],\"maxTokens\":100}"                            \
	}
#define ROOTS(key_)                                                                                \
	{                                                                                          \
		.key = (key_), .method = "roots/list", .capability = "roots", .params = "{}"       \
	}
#define NAME_OF_USER ELICIT("user_name", "What is your name?", TEXT("name"), "name")
#define CONFIRM      ELICIT("confirm", "Go on?", "\"ok\":{\"type\":\"boolean\"}", "ok")

static const char schema_2020[] =
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
	"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
	"\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{"
	"\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
	"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
	"\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
	"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
	"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
	"\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
	"\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}";

/* clang-format off */
const struct fixture_tool fixture_tools[] = {
	{"test_simple_text", "One text.", .before = "This is a simple text response for testing."},
	{"test_image_content", "An image.", .content = "[" IMAGE "]"},
	{"test_audio_content", "A sound.", .content = "[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]"},
	{"test_embedded_resource", "A resource.", .content = "[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\",\"mimeType\":\"text/plain\",\"text\":\"This stands in a resource.\"}}]"},
	{"test_multiple_content_types", "All of them.", .content = "[{\"type\":\"text\",\"text\":\"Several kinds:\"}," IMAGE ",{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\",\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}]"},
	{"test_error_handling", "Always fails.", .before = "This tool intentionally returns an error for testing", .is_error = true},
	{"test_tool_with_progress", "Tells how it goes on.", .before = "Done.", .reports = true},
	{"test_tool_with_logging", "Logs.", .before = "Done.", .logs = true},
	{"test_logging_tool", "Logs nothing that was not asked for.", .before = "Done."},
	{"test_streaming_elicitation", "Answers without a request of its own.", .before = "Done."},
	{"test_missing_capability", "Only for clients with a model.", .before = "Done.", .capability = "sampling"},
	{"json_schema_2020_12_tool", "Has a schema of many keywords.", .schema = schema_2020, .before = "Done."},
	{"test_header_parameter", "Has a parameter that a header repeats.", .schema = "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}}}", .before = "In ", .after = ".", .argument = "region", .header = "HTTP_MCP_PARAM_REGION"},

	{"test_input_required_result_elicitation", "Asks for a name.", .before = "Hello, ", .after = "!", .answer_of = "user_name", .rounds = {{NAME_OF_USER}}},
	{"test_input_required_result_sampling", "Asks a model.", .before = "It has answered.", .rounds = {{SAMPLE("capital_question", "What is the capital of France?")}}},
	{"test_input_required_result_list_roots", "Asks for folders.", .before = "They were told.", .rounds = {{ROOTS("client_roots")}}},
	{"test_input_required_result_request_state", "Asks, and knows its question again.", .before = "state-ok", .has_state = true, .rounds = {{CONFIRM}}},
	{"test_input_required_result_tampered_state", "Does not take a changed state.", .before = "state-ok", .has_state = true, .rounds = {{CONFIRM}}},
	{"test_input_required_result_multiple_inputs", "Asks three things at once.", .before = "All were answered.", .has_state = true, .rounds = {{NAME_OF_USER, SAMPLE("greeting", "Greet somebody."), ROOTS("client_roots")}}},
	{"test_input_required_result_multi_round", "Asks twice.", .before = "Both were answered.", .has_state = true, .rounds = {{ELICIT("step1", "Your name?", TEXT("name"), "name")}, {ELICIT("step2", "Your colour?", TEXT("color"), "color")}}},
	{"test_input_required_result_capabilities", "Asks what the client can answer.", .before = "Answered.", .rounds = {{CONFIRM, SAMPLE("question", "Are you there?"), ROOTS("client_roots")}}},

	{"greet", "Greets.", .schema = OBJECT(TEXT("name")), .before = "Hello, ", .after = "!", .argument = "name"},
	{"slow_compute", "Takes some seconds.", .schema = OBJECT("\"seconds\":{\"type\":\"number\"}," TEXT("label")), .before = "Computed ", .after = ".", .argument = "label", .task = TASK_RESULT},
	{"failing_job", "Fails after a second.", .before = "It has failed.", .is_error = true, .task = TASK_TOOL_ERROR, .only_task = true, .task_ms = 1000},
	{"protocol_error_job", "Breaks.", .before = "", .task = TASK_BROKEN, .only_task = true, .task_ms = 300},
	{"confirm_delete", "Asks before it deletes nothing.", .schema = OBJECT(TEXT("filename")), .before = "Deleted ", .after = ".", .argument = "filename", .task = TASK_RESULT, .only_task = true, .task_asks = {ELICIT("confirm", "Delete it?", "\"confirm\":{\"type\":\"boolean\"}", "confirm")}},
	{"multi_input", "Asks two things at once.", .before = "Both were answered.", .task = TASK_RESULT, .only_task = true, .task_asks = {ELICIT("first", "Your name?", TEXT("name"), "name"), ELICIT("second", "Your other name?", TEXT("name"), "name")}},
	{"test_tool_with_task", "Asks for a name, then takes a moment.", .before = "Hello, ", .after = "!", .answer_of = "user_name", .rounds = {{NAME_OF_USER}}, .task = TASK_RESULT, .only_task = true, .task_ms = 500},
	{0},
};

#define MESSAGE(content) "{\"role\":\"user\",\"content\":" content "}"
const struct fixture_prompt fixture_prompts[] = {
	{"test_simple_prompt", "A text.", .messages = "[" MESSAGE("{\"type\":\"text\",\"text\":\"This is a simple prompt for testing.\"}") "]"},
	{"test_prompt_with_arguments", "A text with two words of yours.", .arguments = "[{\"name\":\"arg1\",\"description\":\"A word.\",\"required\":true},{\"name\":\"arg2\",\"description\":\"Another one.\",\"required\":true}]"},
	{"test_prompt_with_embedded_resource", "A resource.", .arguments = "[{\"name\":\"resourceUri\",\"description\":\"Which one.\",\"required\":true}]", .messages = "[" MESSAGE("{\"type\":\"resource\",\"resource\":{\"uri\":\"test://example-resource\",\"mimeType\":\"text/plain\",\"text\":\"Embedded.\"}}") "," MESSAGE("{\"type\":\"text\",\"text\":\"Read it.\"}") "]"},
	{"test_prompt_with_image", "An image.", .messages = "[" MESSAGE(IMAGE) "," MESSAGE("{\"type\":\"text\",\"text\":\"Look at it.\"}") "]"},
	{"test_input_required_result_prompt", "Asks first.", .messages = "[" MESSAGE("{\"type\":\"text\",\"text\":\"Now I know.\"}") "]", .asks = {ELICIT("user_context", "What is it about?", TEXT("context"), "context")}},
	{0},
};

const struct fixture_resource fixture_resources[] = {
	{"test://static-text", "A text", "text/plain", .text = "This is the content of the static text resource."},
	{"test://static-binary", "An image", "image/png", .blob = PNG},
	{"test://watched-resource", "Something to watch", "text/plain", .text = "Unchanged."},
	{"test://template/{id}/data", "Data by number", "application/json", .text = NULL},
	{0},
};
/* clang-format on */
