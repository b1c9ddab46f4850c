/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sidecar/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/meta_builder.h"
#include "sidecar/say.h"

enum kind {
	KIND_FLAG,   /* no value; the environment takes 1, yes, ..., 0, no, ... */
	KIND_TEXT,   /* any string but the empty one */
	KIND_SIZE,   /* bytes, with K, M, G */
	KIND_COUNT,  /* a whole number */
	KIND_LEVEL,  /* a whole number, maybe negative */
	KIND_TIME,   /* seconds, maybe with a fraction, or ms: kept in milliseconds */
	KIND_CHOICE, /* one of a list: its place in it */
};

struct option_entry {
	const char *name;
	char letter; /* 0: none */
	enum kind kind;
	bool hidden;
	size_t offset; /* in struct mt_options */
	const char *env;
	const char *value;   /* what --help calls the value, or the choices: "a|b" */
	const char *initial; /* NULL: zero */
	int64_t least, most; /* of numbers */
	const char *help;
};

#define AT(field) offsetof(struct mt_options, field)
#define KIB	  INT64_C(1024)
#define MIB	  (1024 * KIB)
#define TIB	  (1024 * 1024 * MIB)

static const struct option_entry table[] = {
	{ "output", 'o', KIND_TEXT, false, AT(output), "MEMTRACK_OUTPUT", "FILE|DIR", NULL, 0, 0,
	  "where the artifact goes (default: ./<pid>.MemtrackArtifact.msgpack)" },
	{ "force", 0, KIND_FLAG, false, AT(force), "MEMTRACK_FORCE", NULL, NULL, 0, 0,
	  "replace FILE when it exists, once the command runs" },
	{ "quiet", 'q', KIND_FLAG, false, AT(quiet), "MEMTRACK_QUIET", NULL, NULL, 0, 0,
	  "no summary and no warnings on standard error" },
	{ "buffer-size", 0, KIND_SIZE, false, AT(buffer_bytes), "MEMTRACK_BUFFER_SIZE", "SIZE",
	  "8M", 64 * KIB, 64 * MIB, "buffers of a program before they grow, 64K to 64M" },
	{ "max-buffers", 0, KIND_SIZE, false, AT(max_buffers_bytes), "MEMTRACK_MAX_BUFFERS", "SIZE",
	  "256M", 64 * KIB, 64 * 1024 * MIB, "buffers of all processes together" },
	{ "max-memory", 0, KIND_SIZE, false, AT(max_memory_bytes), "MEMTRACK_MAX_MEMORY", "SIZE",
	  "1G", 16 * MIB, TIB, "memory of memtrack itself for checking the order of events" },
	{ "max-file-size", 0, KIND_SIZE, false, AT(max_file_bytes), "MEMTRACK_MAX_FILE_SIZE",
	  "SIZE", "0", 0, INT64_MAX,
	  "stop recording before the artifact becomes larger (0: no limit)" },
	{ "on-full", 0, KIND_CHOICE, false, AT(on_full), "MEMTRACK_ON_FULL", "block|drop", "block",
	  0, 0, "full buffers: let the program wait, or drop and count" },
	{ "max-wait", 0, KIND_TIME, false, AT(max_wait_ms), "MEMTRACK_MAX_WAIT", "SECONDS", "10", 0,
	  3600 * 1000, "longest wait for a sidecar that makes no progress, then drop and count" },
	{ "order", 0, KIND_CHOICE, false, AT(order), "MEMTRACK_ORDER", "fast|strict", "fast", 0, 0,
	  "strict: order provable for any allocator, 13 ns more a pair" },
	{ "workers", 0, KIND_COUNT, false, AT(workers), "MEMTRACK_WORKERS", "N", "0", 0, 256,
	  "encoder threads (0: all processors but two; 2 to 3, or 1)" },
	{ "level", 0, KIND_LEVEL, false, AT(level), "MEMTRACK_LEVEL", "N", "-1", -100, 22,
	  "zstd compression level, -100 to 22, not 0" },
	{ "codec", 0, KIND_CHOICE, false, AT(codec), "MEMTRACK_CODEC", "fused|zstd", "fused", 0, 0,
	  "how frames are made: fused is faster, the events are the same" },
	{ "bpf", 0, KIND_CHOICE, false, AT(bpf), "MEMTRACK_BPF", "auto|full|basic|off", "auto", 0,
	  0, "what may be used to see processes and mappings; full: eBPF or fail" },
	{ "no-mmap-events", 0, KIND_FLAG, false, AT(no_mmap_events), "MEMTRACK_NO_MMAP_EVENTS",
	  NULL, NULL, 0, 0, "do not record the program's own mmap, munmap and mremap" },
	{ "no-follow-env", 0, KIND_FLAG, false, AT(no_follow_env), "MEMTRACK_NO_FOLLOW_ENV", NULL,
	  NULL, 0, 0, "leave environments alone that a program gives to exec" },
	{ "require-complete", 0, KIND_FLAG, false, AT(require_complete),
	  "MEMTRACK_REQUIRE_COMPLETE", NULL, NULL, 0, 0,
	  "exit 125 if anything was lost, untracked or unwritten, or the kernel cannot tell" },
	{ "as-root", 0, KIND_FLAG, false, AT(as_root), "MEMTRACK_AS_ROOT", NULL, NULL, 0, 0,
	  "under sudo: run the command as root, not as the user who called sudo" },
	{ "help", 'h', KIND_FLAG, false, AT(help), NULL, NULL, NULL, 0, 0, "this text" },
	{ "version", 'V', KIND_FLAG, false, AT(version), NULL, NULL, NULL, 0, 0, "the version" },
	{ "library", 0, KIND_TEXT, true, AT(library), NULL, "PATH", NULL, 0, 0, NULL },
	{ "force-process", 0, KIND_TEXT, true, AT(force_process), NULL, "SOURCE", NULL, 0, 0,
	  NULL },
	{ "force-exec-maps", 0, KIND_TEXT, true, AT(force_exec_maps), NULL, "SOURCE", NULL, 0, 0,
	  NULL },
	{ "force-later-maps", 0, KIND_TEXT, true, AT(force_later_maps), NULL, "SOURCE", NULL, 0, 0,
	  NULL },
	{ "attach", 0, KIND_COUNT, true, AT(attach), NULL, "PID", "0", 1, INT32_MAX, NULL },
	{ "ready-fd", 0, KIND_COUNT, true, AT(ready_fd), NULL, "FD", "0", 0, INT32_MAX, NULL },
	{ "list-options", 0, KIND_FLAG, true, AT(list_options), NULL, NULL, NULL, 0, 0, NULL },
};

/* Columns of --help, and of what stands left of the texts. */
#define HELP_WIDTH 79
#define HELP_LEFT  34

#define TABLE_LEN (sizeof(table) / sizeof(table[0]))

static void *field_of(struct mt_options *options, const struct option_entry *entry)
{
	return (char *)options + entry->offset;
}

int mt_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	unsigned shift = 0;
	uint64_t value;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return -EINVAL;
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
		/* "KiB" and "KB" are taken as K: who writes them means 1024 here. */
		if (end[0] == 'i' && end[1] == 'B')
			end += 2;
		else if (end[0] == 'B')
			end++;
	}
	if (*end)
		return -EINVAL;
	if (value > (UINT64_MAX >> shift))
		return -ERANGE;
	*ret_bytes = value << shift;
	return 0;
}

static int parse_number(const char *text, int64_t *ret_value)
{
	char *end;

	if (!isdigit((unsigned char)*text) && !(*text == '-' && isdigit((unsigned char)text[1])))
		return -EINVAL;
	errno = 0;
	*ret_value = strtoll(text, &end, 10);
	if (errno)
		return -ERANGE;
	return *end ? -EINVAL : 0;
}

/* Seconds with at most three digits after the point, or milliseconds as "250ms". */
static int parse_time(const char *text, int64_t *ret_ms)
{
	int64_t value = 0, scale = 1000;
	const char *p = text;

	for (; isdigit((unsigned char)*p); p++) {
		value = value * 10 + (*p - '0');
		if (value > INT32_MAX)
			return -ERANGE;
	}
	if (p == text)
		return -EINVAL;
	if (strcmp(p, "ms") == 0) {
		*ret_ms = value;
		return 0;
	}
	value *= 1000;
	if (*p == '.') {
		for (p++; isdigit((unsigned char)*p); p++) {
			scale /= 10;
			value += (*p - '0') * scale;
		}
	}
	if (*p == 's')
		p++;
	*ret_ms = value;
	return *p ? -EINVAL : 0;
}

static int parse_choice(const char *choices, const char *text, uint32_t *ret_index)
{
	size_t len = strlen(text);
	uint32_t index = 0;
	const char *p;

	for (p = choices;; p++, index++) {
		size_t choice_len = strcspn(p, "|");

		if (choice_len == len && memcmp(p, text, len) == 0) {
			*ret_index = index;
			return 0;
		}
		p += choice_len;
		if (!*p)
			return -EINVAL;
	}
}

static int set_number(struct mt_options *options, const struct option_entry *entry,
		      const char *text)
{
	int64_t value;
	int err;

	if (entry->kind == KIND_SIZE) {
		uint64_t bytes;

		err = mt_parse_size(text, &bytes);
		value = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
	} else if (entry->kind == KIND_TIME) {
		err = parse_time(text, &value);
	} else {
		err = parse_number(text, &value);
	}
	if (err)
		return err;
	if (value < entry->least || value > entry->most)
		return -ERANGE;
	/* zstd's word for "your default", which is not ours. */
	if (entry->kind == KIND_LEVEL && value == 0)
		return -ERANGE;
	*(int64_t *)field_of(options, entry) = value;
	return 0;
}

static int set_flag(struct mt_options *options, const struct option_entry *entry, const char *text)
{
	static const char *const words[] = { "0", "1", "no", "yes", "false", "true", "off", "on" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*(bool *)field_of(options, entry) = i % 2 == 1;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_value(struct mt_options *options, const struct option_entry *entry, const char *text)
{
	switch (entry->kind) {
	case KIND_FLAG:
		return set_flag(options, entry, text);
	case KIND_TEXT:
		if (!*text)
			return -EINVAL;
		*(const char **)field_of(options, entry) = text;
		return 0;
	case KIND_CHOICE:
		return parse_choice(entry->value, text, field_of(options, entry));
	case KIND_SIZE:
	case KIND_COUNT:
	case KIND_LEVEL:
	case KIND_TIME:
		return set_number(options, entry, text);
	}
	return -EINVAL;
}

/* With the largest unit that leaves a whole number, as a user would write it. */
static const char *size_text(int64_t bytes, char *buffer, size_t cap)
{
	static const char units[] = "KMGT";
	const char *unit = "";

	for (const char *next = units; *next && bytes && bytes % 1024 == 0; next++) {
		bytes /= 1024;
		unit = next;
	}
	snprintf(buffer, cap, "%" PRId64 "%.1s", bytes, unit);
	return buffer;
}

static void say_wrong(const struct option_entry *entry, const char *where, const char *text,
		      int err)
{
	char least[32], most[32];

	switch (entry->kind) {
	case KIND_FLAG:
		mt_say_error("%s: '%s' is none of 1, yes, true, on, 0, no, false, off", where,
			     text);
		return;
	case KIND_TEXT:
		mt_say_error("%s: %s must not be empty", where, entry->value);
		return;
	case KIND_CHOICE:
		mt_say_error("%s: '%s' is not one of %s", where, text, entry->value);
		return;
	case KIND_SIZE:
		if (err == -EINVAL)
			mt_say_error("%s: '%s' is not a size (such as 512K, 8M, 1G)", where, text);
		else
			mt_say_error("%s: '%s' is out of range (%s to %s)", where, text,
				     size_text(entry->least, least, sizeof(least)),
				     size_text(entry->most, most, sizeof(most)));
		return;
	case KIND_TIME:
		if (err == -EINVAL)
			mt_say_error("%s: '%s' is not a time (such as 10, 0.5, 250ms)", where,
				     text);
		else
			mt_say_error("%s: '%s' is out of range (0 to %lld seconds)", where, text,
				     (long long)entry->most / 1000);
		return;
	case KIND_COUNT:
	case KIND_LEVEL:
		if (err == -EINVAL)
			mt_say_error("%s: '%s' is not a whole number", where, text);
		else
			mt_say_error("%s: '%s' is out of range (%lld to %lld%s)", where, text,
				     (long long)entry->least, (long long)entry->most,
				     entry->kind == KIND_LEVEL ? ", not 0" : "");
		return;
	}
}

static void options_initial(struct mt_options *options)
{
	size_t i;

	memset(options, 0, sizeof(*options));
	for (i = 0; i < TABLE_LEN; i++) {
		/* The defaults are our own: "0" stands for "not given" and may be out of range. */
		if (table[i].initial && strcmp(table[i].initial, "0") != 0)
			(void)set_value(options, &table[i], table[i].initial);
	}
}

/* What the command line gave is not looked at: a variable that it overrides may be wrong. */
static bool parse_environment(struct mt_options *options, const bool *given)
{
	size_t i;

	for (i = 0; i < TABLE_LEN; i++) {
		const struct option_entry *entry = &table[i];
		const char *text = entry->env && !given[i] ? getenv(entry->env) : NULL;
		int err;

		/* An empty variable is one that is not set, as users expect of the shell. */
		if (!text || !*text)
			continue;
		err = set_value(options, entry, text);
		if (err) {
			say_wrong(entry, entry->env, text, err);
			return false;
		}
	}
	return true;
}

/* Finds "name" or an abbreviation of one name alone; NULL when there is none. */
static const struct option_entry *find_long(const char *name, size_t len, bool *ret_ambiguous)
{
	const struct option_entry *found = NULL;
	size_t i;

	*ret_ambiguous = false;
	for (i = 0; i < TABLE_LEN; i++) {
		if (strncmp(table[i].name, name, len) != 0)
			continue;
		if (table[i].name[len] == 0) {
			*ret_ambiguous = false;
			return &table[i];
		}
		if (table[i].hidden)
			continue;
		*ret_ambiguous = found != NULL;
		found = &table[i];
	}
	return *ret_ambiguous || len == 0 ? NULL : found;
}

static const struct option_entry *find_short(char letter)
{
	size_t i;

	for (i = 0; i < TABLE_LEN; i++) {
		if (table[i].letter == letter)
			return &table[i];
	}
	return NULL;
}

struct command_line {
	struct mt_options *options;
	char **argv;
	int index;	       /* of the argument in hand */
	bool given[TABLE_LEN]; /* options that were on it */
};

static bool apply(struct command_line *line, const struct option_entry *entry, const char *text)
{
	char where[64];
	int err;

	snprintf(where, sizeof(where), "--%s", entry->name);
	err = set_value(line->options, entry, text);
	if (err)
		say_wrong(entry, where, text, err);
	line->given[entry - table] = true;
	return err == 0;
}

/* One "--name[=value]". */
static bool parse_long(struct command_line *line)
{
	const char *name = line->argv[line->index] + 2;
	size_t len = strcspn(name, "=");
	const char *text = name[len] ? name + len + 1 : NULL;
	const struct option_entry *entry;
	bool ambiguous;

	entry = find_long(name, len, &ambiguous);
	if (!entry) {
		mt_say_error("%s: --%.*s (memtrack-preload --help lists all options)",
			     ambiguous ? "ambiguous option" : "unknown option", (int)len, name);
		return false;
	}
	if (entry->kind == KIND_FLAG) {
		if (text) {
			mt_say_error("--%s takes no value", entry->name);
			return false;
		}
		return apply(line, entry, "1");
	}
	if (!text)
		text = line->argv[++line->index];
	if (!text) {
		mt_say_error("--%s needs a value: %s", entry->name, entry->value);
		line->index--;
		return false;
	}
	return apply(line, entry, text);
}

/* One cluster of letters: "-q", "-ofile", "-qo file". */
static bool parse_short(struct command_line *line)
{
	const char *p;

	for (p = line->argv[line->index] + 1; *p; p++) {
		const struct option_entry *entry = find_short(*p);
		const char *text;

		if (!entry) {
			mt_say_error(
				"unknown option: -%c (memtrack-preload --help lists all options)",
				*p);
			return false;
		}
		if (entry->kind == KIND_FLAG) {
			if (!apply(line, entry, "1"))
				return false;
			continue;
		}
		text = p[1] ? p + 1 : line->argv[++line->index];
		if (!text) {
			mt_say_error("-%c needs a value: %s", *p, entry->value);
			line->index--;
			return false;
		}
		return apply(line, entry, text);
	}
	return true;
}

int mt_options_parse(int argc, char **argv, struct mt_options *ret_options)
{
	struct command_line line = { .options = ret_options, .argv = argv };

	options_initial(ret_options);
	for (line.index = 1; line.index < argc; line.index++) {
		const char *arg = argv[line.index];

		if (strcmp(arg, "--") == 0) {
			line.index++;
			break;
		}
		if (arg[0] != '-' || arg[1] == 0)
			break;
		if (arg[1] == '-' ? !parse_long(&line) : !parse_short(&line))
			return -EINVAL;
	}
	ret_options->command = argv + line.index;
	/* --help is for those, too, whose variables are wrong. */
	if (!ret_options->help && !ret_options->version &&
	    !parse_environment(ret_options, line.given))
		return -EINVAL;
	return 0;
}

/* The text beside the option, broken at blanks where the line is full. */
static void print_option(FILE *out, const char *left, const char *text)
{
	fprintf(out, "  %-*s", HELP_LEFT - 2, left);
	while (strlen(text) > HELP_WIDTH - HELP_LEFT) {
		int len = HELP_WIDTH - HELP_LEFT;

		while (len > 1 && text[len] != ' ')
			len--;
		fprintf(out, "%.*s\n%*s", len, text, HELP_LEFT, "");
		text += len + 1;
	}
	fprintf(out, "%s\n", text);
}

void mt_options_help(FILE *out)
{
	size_t i;

	fputs("usage: memtrack-preload [options] [--] command [arguments]\n\n"
	      "Records every heap event of a program and of all that it starts into one file,\n"
	      "<pid>.MemtrackArtifact.msgpack, which memtrack(1) reads.\n\n",
	      out);
	for (i = 0; i < TABLE_LEN; i++) {
		const struct option_entry *entry = &table[i];
		char left[80], text[256];

		if (entry->hidden)
			continue;
		snprintf(left, sizeof(left), "%c%c%s--%s%s%s", entry->letter ? '-' : ' ',
			 entry->letter ? entry->letter : ' ', entry->letter ? ", " : "  ",
			 entry->name, entry->value ? "=" : "", entry->value ? entry->value : "");
		if (entry->initial && strcmp(entry->initial, "0") != 0)
			snprintf(text, sizeof(text), "%s (default: %s)", entry->help,
				 entry->initial);
		else
			snprintf(text, sizeof(text), "%s", entry->help);
		print_option(out, left, text);
	}
	fputs("\nWithout memtrack-preload: LD_PRELOAD=.../libmemtrack-preload.so command. Then\n"
	      "options are variables, the status is the command's alone, and the summary comes\n"
	      "when the last process has ended; memtrack verify --wait --require-complete FILE\n"
	      "tells what it would have been.\n",
	      out);
	fputs("\nEach option can be given as a variable too: --max-wait=5 is MEMTRACK_MAX_WAIT=5,\n"
	      "--force is MEMTRACK_FORCE=1 (or yes, true, on; 0, no, false, off: not).\n"
	      "SIZE takes K, M and G. Exit status: the command's; 125 memtrack failed,\n"
	      "126 the command could not be run, 127 it was not found.\n",
	      out);
}

void mt_options_list(FILE *out)
{
	size_t i;

	for (i = 0; i < TABLE_LEN; i++) {
		if (!table[i].hidden)
			fprintf(out, "--%s\t%s\n", table[i].name,
				table[i].env ? table[i].env : "-");
	}
}

static void put_choice(const struct option_entry *entry, uint32_t index,
		       struct mt_meta_builder *builder)
{
	const char *p = entry->value;

	for (; index && *p; index--)
		p += strcspn(p, "|") + 1;
	mt_meta_put_text(builder, entry->name, p, strcspn(p, "|"));
}

void mt_options_put(const struct mt_options *options, struct mt_meta_builder *builder)
{
	size_t i;

	for (i = 0; i < TABLE_LEN; i++) {
		const struct option_entry *entry = &table[i];
		const void *field = (const char *)options + entry->offset;

		if (entry->hidden || !entry->env)
			continue;
		switch (entry->kind) {
		case KIND_FLAG:
			mt_meta_put_bool(builder, entry->name, *(const bool *)field);
			break;
		case KIND_TEXT:
			mt_meta_put_str(builder, entry->name, *(const char *const *)field);
			break;
		case KIND_CHOICE:
			put_choice(entry, *(const uint32_t *)field, builder);
			break;
		case KIND_SIZE:
		case KIND_COUNT:
		case KIND_LEVEL:
		case KIND_TIME:
			mt_meta_put_i64(builder, entry->name, *(const int64_t *)field);
			break;
		}
	}
}
