/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a fuzz target over the files of a folder, without libFuzzer: what was found once is looked
 * at by each `make check`, with whatever compiler there is. The folder is
 * $MT_SRCDIR/tests/fuzz/corpus/<name of the program without "replay_">, or the arguments' files.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>

#include "tests/fuzz/fuzz_input.h"

#define INPUT_MAX (1u << 20)

static int run_file(const char *path)
{
	size_t len;
	uint8_t *bytes = malloc(INPUT_MAX), *exact;
	FILE *file = fopen(path, "rb");

	if (!bytes || !file) {
		printf("Bail out! %s: %s\n", path, strerror(errno));
		exit(1);
	}
	len = fread(bytes, 1, INPUT_MAX, file);
	fclose(file);
	/* Of its own size, so that a read behind it is seen by a sanitizer. */
	exact = realloc(bytes, len ? len : 1);
	LLVMFuzzerTestOneInput(exact ? exact : bytes, len);
	free(exact ? exact : bytes);
	return 1;
}

static int run_folder(const char *folder)
{
	char path[PATH_MAX + 257];
	struct dirent *entry;
	DIR *dir = opendir(folder);
	int files = 0;

	if (!dir) {
		printf("Bail out! %s: %s\n", folder, strerror(errno));
		exit(1);
	}
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		/* Said before: a crash names its input. */
		printf("# %s\n", entry->d_name);
		fflush(stdout);
		files += run_file(path);
	}
	closedir(dir);
	return files;
}

int main(int argc, char **argv)
{
	const char *source = getenv("MT_SRCDIR"), *name = strstr(argv[0], "replay_");
	char folder[PATH_MAX];
	int files = 0;

	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			files += run_file(argv[i]);
	} else {
		snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", source ? source : ".",
			 name ? name + strlen("replay_") : "");
		files = run_folder(folder);
	}
	printf("%sok 1 - %d inputs\n1..1\n", files ? "" : "not ", files);
	return files == 0;
}
