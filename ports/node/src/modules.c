// Part of engine.c: modules of ECMAScript, which the library's loader finds and links.

static JSClassID module_class;

struct module {
	JSContext *ctx;
	JSModuleDef *def;
	JSValue value, evaluate;
};

static void free_module(JSRuntime *rt, JSValueConst object)
{
	struct module *module = JS_GetOpaque(object, module_class);
	JS_FreeValueRT(rt, module->value);
	JS_FreeValueRT(rt, module->evaluate);
	free(module);
}

static struct module *module_of(JSContext *ctx, JSValueConst object)
{
	return JS_GetOpaque2(ctx, object, module_class);
}

static JSValue wrap_module(JSContext *ctx, JSModuleDef *def, JSValue value, JSValueConst evaluate)
{
	JSValue object = JS_NewObjectClass(ctx, module_class);
	struct module *module = got(malloc(sizeof *module));
	*module = (struct module){ ctx, def, value, js_dup(evaluate) };
	JS_SetOpaque(object, module);
	return object;
}

// module_compile(source, url)
static JSValue module_compile(ARGS)
{
	JSValue value = eval_as(ctx, argv[0], argv[1], JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	if (JS_IsException(value))
		return value;
	return wrap_module(ctx, JS_VALUE_GET_PTR(value), value, JS_UNDEFINED);
}

static int evaluate_synthetic(JSContext *ctx, JSModuleDef *def)
{
	JSValue function = JS_GetModulePrivateValue(ctx, def);
	JSValue result = JS_Call(ctx, function, JS_UNDEFINED, 0, NULL);
	JS_FreeValue(ctx, function);
	if (JS_IsException(result))
		return -1;
	JS_FreeValue(ctx, result);
	return 0;
}

// module_synthetic(url, names, evaluate): its exports are set by module_export.
static JSValue module_synthetic(ARGS)
{
	const char *url = JS_ToCString(ctx, argv[0]);
	JSModuleDef *def = url ? JS_NewCModule(ctx, url, evaluate_synthetic) : NULL;
	int64_t count = 0;
	JS_FreeCString(ctx, url);
	if (!def)
		return JS_EXCEPTION;
	JS_GetLength(ctx, argv[1], &count);
	for (int64_t i = 0; i < count; i++) {
		JSValue name = JS_GetPropertyUint32(ctx, argv[1], i);
		const char *text = JS_ToCString(ctx, name);
		if (text)
			JS_AddModuleExport(ctx, def, text);
		JS_FreeCString(ctx, text);
		JS_FreeValue(ctx, name);
	}
	JS_SetModulePrivateValue(ctx, def, js_dup(argv[2]));
	return wrap_module(ctx, def, js_dup(JS_MKPTR(JS_TAG_MODULE, def)), argv[2]);
}

// [[specifier, attributes]...]
static JSValue module_requests(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	JSValue list = JS_NewArray(ctx);
	if (!module)
		return JS_EXCEPTION;
	for (int i = 0; i < module->def->req_module_entries_count; i++) {
		JSReqModuleEntry *entry = &module->def->req_module_entries[i];
		JSValue pair = JS_NewArray(ctx);
		JS_SetPropertyUint32(ctx, pair, 0, JS_AtomToString(ctx, entry->module_name));
		JS_SetPropertyUint32(ctx, pair, 1, js_dup(entry->attributes));
		JS_SetPropertyUint32(ctx, list, i, pair);
	}
	return list;
}

// module_link(module, modules): in the order of its requests.
static JSValue module_link(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	if (!module)
		return JS_EXCEPTION;
	for (int i = 0; i < module->def->req_module_entries_count; i++) {
		JSValue value = JS_GetPropertyUint32(ctx, argv[1], i);
		struct module *other = module_of(ctx, value);
		JS_FreeValue(ctx, value);
		if (!other)
			return JS_EXCEPTION;
		module->def->req_module_entries[i].module = other->def;
	}
	module->def->resolved = true;
	return JS_UNDEFINED;
}

struct seen {
	JSModuleDef **list;
	int count, room;
};

// Whether a module, and all that it imports, has been linked.
static bool linked(JSModuleDef *def, struct seen *seen)
{
	for (int i = 0; i < seen->count; i++)
		if (seen->list[i] == def)
			return true;
	if (seen->count == seen->room) {
		seen->room = 2 * seen->room + 64;
		seen->list = got(realloc(seen->list, seen->room * sizeof *seen->list));
	}
	seen->list[seen->count++] = def;
	if (!def->resolved && def->req_module_entries_count)
		return false;
	for (int i = 0; i < def->req_module_entries_count; i++)
		if (!def->req_module_entries[i].module || !linked(def->req_module_entries[i].module, seen))
			return false;
	def->resolved = true;
	return true;
}

static JSValue module_instantiate(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	if (!module)
		return JS_EXCEPTION;
	struct seen seen = { 0 };
	bool whole = linked(module->def, &seen);
	free(seen.list);
	if (!whole)
		return JS_ThrowTypeError(ctx, "linking error, dependency not set");
	if (module->def->status != JS_MODULE_STATUS_UNLINKED)
		return JS_UNDEFINED;
	if (js_create_module_function(module->ctx, module->def) < 0 || js_link_module(module->ctx, module->def) < 0)
		return JS_EXCEPTION;
	return JS_UNDEFINED;
}

// The promise of a module's evaluation.
static JSValue module_evaluate(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	if (!module)
		return JS_EXCEPTION;
	if (module->def->status < JS_MODULE_STATUS_LINKED)
		return JS_ThrowTypeError(ctx, "the module is not linked");
	return js_evaluate_module(module->ctx, module->def);
}

// module_export(module, name, value)
static JSValue module_export(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	const char *name = JS_ToCString(ctx, argv[1]);
	int failed = -1;
	if (module && name)
		failed = JS_SetModuleExport(ctx, module->def, name, js_dup(argv[2]));
	JS_FreeCString(ctx, name);
	return failed < 0 ? JS_EXCEPTION : JS_UNDEFINED;
}

static JSValue module_namespace(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	return module ? JS_GetModuleNamespace(module->ctx, module->def) : JS_EXCEPTION;
}

static JSValue module_meta(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	return module ? JS_GetImportMeta(module->ctx, module->def) : JS_EXCEPTION;
}

// As V8 counts: uninstantiated, instantiating, instantiated, evaluating, evaluated, errored.
static JSValue module_status(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	if (!module)
		return JS_EXCEPTION;
	if (module->def->eval_has_exception)
		return JS_NewInt32(ctx, 5);
	switch (module->def->status) {
	case JS_MODULE_STATUS_UNLINKED:
		return JS_NewInt32(ctx, 0);
	case JS_MODULE_STATUS_LINKING:
		return JS_NewInt32(ctx, 1);
	case JS_MODULE_STATUS_LINKED:
		return JS_NewInt32(ctx, 2);
	case JS_MODULE_STATUS_EVALUATING:
		return JS_NewInt32(ctx, 3);
	default:
		return JS_NewInt32(ctx, 4);
	}
}

static JSValue module_error(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	return module ? js_dup(module->def->eval_exception) : JS_EXCEPTION;
}

static JSValue module_awaits(ARGS)
{
	struct module *module = module_of(ctx, argv[0]);
	return module ? JS_NewBool(ctx, module->def->has_tla) : JS_EXCEPTION;
}

static const JSCFunctionListEntry module_list[] = {
	FUNCTION(module_compile, 2),
	FUNCTION(module_synthetic, 3),
	FUNCTION(module_requests, 1),
	FUNCTION(module_link, 2),
	FUNCTION(module_instantiate, 1),
	FUNCTION(module_evaluate, 1),
	FUNCTION(module_export, 3),
	FUNCTION(module_namespace, 1),
	FUNCTION(module_meta, 1),
	FUNCTION(module_status, 1),
	FUNCTION(module_error, 1),
	FUNCTION(module_awaits, 1),
};

JSValue module_functions(JSContext *ctx)
{
	JSRuntime *rt = JS_GetRuntime(ctx);
	JSClassDef class = { "Module", .finalizer = free_module };
	JS_NewClassID(rt, &module_class);
	JS_NewClass(rt, module_class, &class);
	JSValue object = JS_NewObject(ctx);
	EXPORT(ctx, object, module_list);
	return object;
}
