// Compiles the library to the engine's code, when the program is built: pack OUTPUT {NAME FILE}...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

void run_jobs(struct env *env)
{
	(void)env;
}

// By what names a file of the library knows what it is called with.
static const char *parameters(const char *name)
{
	if (!strncmp(name, "ours/", 5))
		return "native, shared";
	if (!strcmp(name, "internal/bootstrap/realm"))
		return "process, getLinkedBinding, getInternalBinding, primordials";
	if (!strncmp(name, "internal/per_context/", 21))
		return "exports, primordials, privateSymbols, perIsolateSymbols";
	if (!strncmp(name, "internal/main/", 14) || !strncmp(name, "internal/bootstrap/", 19))
		return "process, require, internalBinding, primordials";
	return "exports, require, module, process, internalBinding, primordials";
}

static char *read_all(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		exit(1);
	}
	fseek(file, 0, SEEK_END);
	*length = ftell(file);
	rewind(file);
	char *text = got(malloc(*length + 1));
	if (fread(text, 1, *length, file) != *length) {
		perror(path);
		exit(1);
	}
	text[*length] = 0;
	fclose(file);
	return text;
}

int main(int argc, char **argv)
{
	JSRuntime *rt = JS_NewRuntime();
	JSContext *ctx = JS_NewContext(rt);
	FILE *out = fopen(argv[1], "wb");
	if (!out) {
		perror(argv[1]);
		return 1;
	}
	for (int i = 2; i + 1 < argc; i += 2) {
		size_t length, size;
		char *text = read_all(argv[i + 1], &length), file[512], *source;
		const char *params = parameters(argv[i]);
		source = got(malloc(length + strlen(params) + 64));
		int whole = sprintf(source, "(function (%s) {", params);
		memcpy(source + whole, text, length);
		memcpy(source + whole + length, "\n})", 4);
		snprintf(file, sizeof file, "node:%s", argv[i]);
		JSValue code =
		    JS_Eval(ctx, source, whole + length + 3, file, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
		if (JS_IsException(code)) {
			JSValue error = JS_GetException(ctx);
			JSValue stack = JS_GetPropertyStr(ctx, error, "stack");
			fprintf(
			    stderr, "%s: %s\n%s\n", argv[i + 1], JS_ToCString(ctx, error), JS_ToCString(ctx, stack));
			return 1;
		}
		uint8_t *data = JS_WriteObject(ctx, &size, code, JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_SOURCE);
		uint32_t word = size;
		fwrite(argv[i], 1, strlen(argv[i]) + 1, out);
		fwrite(&word, sizeof word, 1, out);
		fwrite(data, 1, size, out);
		js_free(ctx, data);
		JS_FreeValue(ctx, code);
		free(source);
		free(text);
	}
	return fclose(out) ? 1 : 0;
}
