/*
 * Every bound of the program, with its unit and its reason. docs/limits.md is printed from here by
 * hand of `compute-connector print limits`; the tool schemas take their maxima from here too.
 */
#pragma once
/* -- what a caller may send ------------------------------------------------------------------- */
#define CMD_CHARS_MAX      16000  /* characters; a script longer than this belongs in a file */
#define FILES_MAX          50     /* files sent with one job */
#define FILES_BYTES_MAX    512000 /* decoded bytes of all files together */
#define PATH_BYTES_MAX     512    /* one relative path; PATH_MAX of the box minus our prefix */
#define ENV_NAMES_MAX      64     /* variables */
#define MAP_NAME_BYTES_MAX 128    /* one name of a map of strings, such as an env variable's */
#define ENV_VALUE_BYTES_MAX                                                                        \
	100000                     /* one value; 131 072 with its name makes exec(2) fail (E2BIG)  \
				    */
#define ENV_BYTES_MAX      1000000 /* all names and values: half of what exec(2) takes (2 MiB) */
#define TIMEOUT_S_MAX      3600
#define TIMEOUT_S_DEFAULT  240
#define WAIT_S_MAX         240      /* below nginx's fastcgi_read_timeout (260 s) */
#define WAIT_S_DEFAULT     45       /* below the shortest time-out of a known client (60 s) */
#define MEMORY_MB_MAX      67108864 /* 64 TB in MB: above it somebody sent bytes or kB */
#define GPU_CHARS_MAX      32       /* of a type; the longest known one has 12 */
#define GPUS_MAX           8        /* of one sandbox: no provider has machines with more */
#define IDEM_KEY_CHARS_MAX 255
#define KEY_NAME_CHARS_MAX 64
#define TOKEN_BYTES_MAX    4096 /* a provider key or token value */
#define PAGE_ROWS_MAX      100

/* -- request and reply ------------------------------------------------------------------------ */
#define BODY_BYTES_MAX        (4 << 20) /* /mcp and /api/run/: files in base64 and JSON escapes */
#define BODY_BYTES_SMALL_MAX  (8 << 10) /* every other path */
#define REPLY_BYTES_MAX       (4 << 20)
#define ARENA_BYTES_MAX       (48 << 20) /* body, its tree, decoded copy, reply: 4 + 24 + 8 + 4 MiB */
#define JSON_DEPTH_MAX        32
#define JSON_VALUES_MAX       10000
#define JSON_NUMBER_CHARS_MAX 128 /* of one number; the longest that says anything has about 80 */
#define JSON_INT_MAX          9007199254740991LL /* 2^53 - 1: exact in every client's number type */

/* -- output of a job -------------------------------------------------------------------------- */
#define TAIL_BYTES_MAX 16384 /* of each stream, kept and returned */
#define RESULT_TTL_S   3600  /* how long a sealed result can be picked up */
#define IDEM_TTL_H     48
#define RETENTION_DAYS 90

/* -- times of a job --------------------------------------------------------------------------- */
#define POLL_WAIT_S     20   /* how long one poll may wait inside the sandbox */
#define KILL_GRACE_S    5    /* between TERM and KILL */
#define SANDBOX_GRACE_S 120  /* the provider's hard end lies this far behind our own limit */
#define STOP_WAIT_MS    2000 /* the reply waits this long for a confirmed stop */
#define HEARTBEAT_S     5
#define DRIVER_DEAD_S   45

/* -- outbound --------------------------------------------------------------------------------- */
#define UPSTREAM_REPLY_MAX   (8 << 20)
#define UPSTREAM_HEADERS_MAX (64 << 10)
#define EXEC_OUTPUT_MAX                                                                            \
	(2 << 20)                 /* each stream of a short command; both in base64 fit the reply  \
				   */
#define EXEC_LINE_MAX (512 << 10) /* one line of its stream: 256 KiB in base64, and its frame */
#define URL_CHARS_MAX 2048        /* of one call; a user's base URL is shorter still */
#define CONNECT_MS                                                                                 \
	15000 /* with TLS: of a hundred jobs that begin at once a slow service                     \
	       * answers the last after 7 s */
#define FIRST_BYTE_MS 30000

/* -- keys at rest ----------------------------------------------------------------------------- */
#define MASTER_KEYS_MAX      16   /* one is enough, two during a rotation */
#define SEAL_VALUE_BYTES_MAX 8000 /* all fields of one provider key; its blob fits 8192 bytes */

/* -- database --------------------------------------------------------------------------------- */
#define DB_CONNECTIONS    8  /* per process; 8 shared by 64 threads gave the rate of 64 */
#define DB_TRIES          5  /* of a transaction that lost a deadlock */
#define DB_READ_TIMEOUT_S 15 /* longer than a cluster's stall when a node dies */
#define DELETE_BATCH      1000

/* -- processes and threads -------------------------------------------------------------------- */
#define HEAD_BYTES_MAX     65536 /* FastCGI parameters of one request; nginx's own limit is 32 KiB */
#define HEAD_WAIT_MS       10000 /* from a connection's first sign of life to its last parameter */
#define INPUT_WAIT_MS      10000 /* reading what a handler left of its input */
#define PEER_READ_S        10 /* silence of nginx in mid-request: it has the whole request already */
#define PEER_WRITE_S       60 /* one write to nginx, whose buffers a slow client may have filled */
#define THREAD_STACK       524288 /* bytes, of address space only: touched pages are 5 - 12 KiB */
#define THREAD_IDLE_MS     30000  /* creating one costs 60 us, so an idle one is kept */
#define QUEUE_WAIT_MS      10000  /* a request that found no thread for so long is answered 503 */
#define VALVE_MS           20    /* work that did not move for so long gets one more place to run */
#define VALVE_KEEP_MS      1000  /* and the extra place is taken back after this */
#define DESCRIPTORS_MAX    65536 /* per worker: one per connection of nginx, one per outbound call */
#define CHILD_YOUNG_MS     5000  /* a child that dies younger than this is restarted with a pause */
#define CHILD_PAUSE_MS     100   /* first pause, doubled up to CHILD_PAUSE_MAX_MS */
#define CHILD_PAUSE_MAX_MS 5000
#define CHILD_START_S      60 /* a new child reports ready within this or is given up */
#define CHILD_KILL_S       5  /* after the drain time, before KILL */
