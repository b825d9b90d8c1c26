// The library's questions to the engine: kinds of values, symbols, errors, and its own files.
'use strict';
const { engine, library, os } = native;
const { bindings, process } = shared;
const { classes, class_id: kind } = engine;

bindings.config = () => ({
    isDebugBuild: false, hasOpenSSL: 'hash' in native.crypto, fipsMode: false, hasIntl: false,
    hasSmallICU: false, hasTracing: false, hasNodeOptions: true, hasInspector: false,
    noBrowserGlobals: false, bits: 32,
    getDefaultLocale: () => undefined,
});

const is = (...ids) => {
    const wanted = new Set(ids);
    return value => wanted.has(kind(value));
};
bindings.types = () => {
    const boxed = [classes.NUMBER, classes.STRING, classes.BOOLEAN, classes.SYMBOL, classes.BIG_INT];
    return {
        isExternal: () => false,
        isDate: is(classes.DATE),
        isArgumentsObject: is(classes.ARGUMENTS, classes.MAPPED_ARGUMENTS),
        isBigIntObject: is(classes.BIG_INT),
        isBooleanObject: is(classes.BOOLEAN),
        isNumberObject: is(classes.NUMBER),
        isStringObject: is(classes.STRING),
        isSymbolObject: is(classes.SYMBOL),
        isBoxedPrimitive: is(...boxed),
        isNativeError: is(classes.ERROR),
        isRegExp: is(classes.REGEXP),
        isAsyncFunction: is(classes.ASYNC_FUNCTION, classes.ASYNC_GENERATOR_FUNCTION),
        isGeneratorFunction: is(classes.GENERATOR_FUNCTION, classes.ASYNC_GENERATOR_FUNCTION),
        isGeneratorObject: is(classes.GENERATOR, classes.ASYNC_GENERATOR),
        isPromise: is(classes.PROMISE),
        isMap: is(classes.MAP),
        isSet: is(classes.SET),
        isMapIterator: is(classes.MAP_ITERATOR),
        isSetIterator: is(classes.SET_ITERATOR),
        isWeakMap: is(classes.WEAKMAP),
        isWeakSet: is(classes.WEAKSET),
        isArrayBuffer: is(classes.ARRAY_BUFFER),
        isDataView: is(classes.DATAVIEW),
        isSharedArrayBuffer: is(classes.SHARED_ARRAY_BUFFER),
        isProxy: is(classes.PROXY),
        isModuleNamespaceObject: is(classes.MODULE_NS),
        isAnyArrayBuffer: is(classes.ARRAY_BUFFER, classes.SHARED_ARRAY_BUFFER),
    };
};

const names = list => Object.fromEntries(list.trim().split(/\s+/).map(name => [name, name]));
bindings.symbols = () => {
    const list = names(`fs_use_promises_symbol async_id_symbol handle_onclose no_message_symbol
        messaging_deserialize_symbol imported_cjs_symbol messaging_transfer_symbol
        messaging_clone_symbol messaging_transfer_list_symbol oninit owner_symbol onpskexchange
        resource_symbol trigger_async_id_symbol source_text_module_default_hdo
        vm_context_no_contextify vm_dynamic_import_default_internal
        vm_dynamic_import_main_context_default vm_dynamic_import_missing_flag
        vm_dynamic_import_no_callback`);
    for (const name in list) list[name] = Symbol(name);
    list.async_context_frame = Symbol('async_context_frame');
    return list;
};

// Of the filters that getOwnNonIndexProperties is given.
const ENUMERABLE = 2, SKIP_SYMBOLS = 16;
const indexName = /^(0|[1-9][0-9]*)$/;
bindings.util = () => {
    const privateSymbols = names(`arrow_message_private_symbol contextify_context_private_symbol
        decorated_private_symbol host_defined_option_symbol module_source_private_symbol
        module_export_names_private_symbol module_circular_visited_private_symbol
        module_export_private_symbol module_parent_private_symbol
        module_first_parent_private_symbol napi_type_tag napi_wrapper
        untransferable_object_private_symbol transfer_mode_private_symbol
        exit_info_private_symbol promise_trace_id require_private_symbol entry_point_promise_private_symbol
        entry_point_module_private_symbol module_last_parent_private_symbol
        source_map_data_private_symbol`);
    for (const name in privateSymbols) privateSymbols[name] = engine.private_symbol(`node:${name}`);
    class WeakReference {
        #weak; #strong; #count = 0;
        constructor(target) { this.#weak = new WeakRef(target); }
        get() { return this.#weak.deref(); }
        incRef() { if (this.#count++ === 0) this.#strong = this.get(); return this.#count; }
        decRef() { if (--this.#count === 0) this.#strong = undefined; return this.#count; }
    }
    return {
        privateSymbols,
        constants: {
            kPending: 0, kFulfilled: 1, kRejected: 2, kExiting: 0, kExitCode: 1, kHasExitCode: 2,
            ALL_PROPERTIES: 0, ONLY_WRITABLE: 1, ONLY_ENUMERABLE: 2, ONLY_CONFIGURABLE: 4,
            SKIP_STRINGS: 8, SKIP_SYMBOLS: 16, kDisallowCloneAndTransfer: 0, kTransferable: 1,
            kCloneable: 2,
        },
        shouldAbortOnUncaughtToggle: new Uint32Array(1),
        WeakReference,
        isInsideNodeModules: () => engine.callers().some(file =>
            !file.startsWith('node:') && /[\\/]node_modules[\\/]/.test(file)),
        getPromiseDetails: engine.promise_details,
        getProxyDetails(value, both = true) {
            const found = engine.proxy_details(value);
            return found && (both ? found : found[0]);
        },
        getCallerLocation: () => undefined,
        isArrayBufferDetached: buffer => buffer.detached === true,
        previewEntries(value, pairs) {
            const [entries, keyed] = engine.preview(value);
            return pairs ? [entries, keyed] : entries;
        },
        getOwnNonIndexProperties(object, filter) {
            return Reflect.ownKeys(object).filter(key =>
                (typeof key === 'string' ? !(indexName.test(key) && Number(key) < 4294967295)
                    : !(filter & SKIP_SYMBOLS)) &&
                (!(filter & ENUMERABLE) || Reflect.getOwnPropertyDescriptor(object, key)?.enumerable));
        },
        getConstructorName(object) {
            for (; object; object = Object.getPrototypeOf(object)) {
                const found = Object.getOwnPropertyDescriptor(object, 'constructor');
                if (typeof found?.value === 'function' && found.value.name) return found.value.name;
            }
            return 'Object';
        },
        getExternalValue: () => 0n,
        getCallSites: () => [],
        sleep: os.sleep,
        parseEnv: shared.parseEnv,
        arrayBufferViewHasBuffer: () => true,
        guessHandleType: fd => ['TCP', 'TTY', 'UDP', 'FILE', 'PIPE', 'UNKNOWN'].indexOf(native.handles.kind_of(fd)),
        toUSVString: text => String(text).toWellFormed(),
        isConstructor(value) {
            try {
                Reflect.construct(Object, [], value);
                return true;
            } catch {
                return false;
            }
        },
        defineLazyProperties(target, id, keys, enumerable = true) {
            for (const key of keys) {
                let value, known = false;
                Object.defineProperty(target, key, {
                    __proto__: null, configurable: true, enumerable,
                    get() {
                        if (!known) value = shared.require(id)[key], known = true;
                        return value;
                    },
                    set(other) { value = other, known = true; },
                });
            }
        },
    };
};

// Values of a .env file: KEY=VALUE lines, quotes, comments.
shared.parseEnv = text => {
    const result = {};
    const line = /^\s*(?:export\s+)?([\w.-]+)\s*=[^\S\n]*("(?:\\"|[^"])*"|'[^']*'|`[^`]*`|[^\n#]*)/gm;
    for (const [, name, raw] of text.replace(/\r\n?/g, '\n').matchAll(line)) {
        let value = raw.trim();
        const quote = value[0];
        if (value.length > 1 && '"\'`'.includes(quote) && value.endsWith(quote)) {
            value = value.slice(1, -1);
            if (quote === '"') value = value.replaceAll('\\n', '\n');
        }
        result[name] = value;
    }
    return result;
};

bindings.builtins = () => {
    const ids = library.names().filter(name => !name.startsWith('ours/'));
    return {
        builtinIds: ids,
        natives: Object.fromEntries(ids.map(id => [id, ''])),
        builtinCategories: { canBeRequired: new Set(ids), cannotBeRequired: new Set() },
        config: JSON.stringify({
            target_defaults: { cflags: [], defines: [], include_dirs: [], libraries: [] },
            variables: { v8_enable_i18n_support: 0, node_shared: false, napi_build_version: '0',
                node_use_openssl: true, node_prefix: '/', node_module_version: 115, asan: 0 },
        }),
        compileFunction: library.load,
        setInternalLoaders(internalBinding, require) {
            Object.assign(shared, { internalBinding, require });
        },
        hasCachedBuiltins: () => true,
        getCacheUsage: () => ({ compiledWithCache: [], compiledWithoutCache: [], compiledInSnapshot: [] }),
    };
};

bindings.errors = () => ({
    exitCodes: {
        kNoFailure: 0, kGenericUserError: 1, kInternalJSParseError: 3,
        kInternalJSEvaluationFailure: 4, kV8FatalError: 5, kInvalidFatalExceptionMonkeyPatching: 6,
        kExceptionInFatalExceptionHandler: 7, kUnsettledTopLevelAwait: 13,
        kInvalidCommandLineArgument: 9, kBootstrapFailure: 10, kInvalidCommandLineArgument2: 12,
        kUnfinishedTopLevelAwait: 13, kStartupSnapshotFailure: 14, kAbort: 134,
    },
    setPrepareStackTraceCallback(function_) { prepare = function_; },
    setGetSourceMapErrorSource() {},
    setSourceMapsEnabled() {},
    setMaybeCacheGeneratedSourceMap() {},
    setEnhanceStackForFatalException(before, after) { shared.enhance = [before, after]; },
    noSideEffectsToString: value => String(value),
    triggerUncaughtException: (error, fromPromise) => shared.uncaught(error, fromPromise),
});

// The line of the program that an error came from, as node shows it above the error.
function sourceLine(stack) {
    const found = /\(?((?:file:\/\/)?\/[^()\n]*):(\d+):(\d+)\)?/.exec(stack);
    if (!found) return '';
    const path = found[1].replace(/^file:\/\//, '');
    const bytes = native.fs.read_file(path, 0);
    if (typeof bytes === 'number') return '';
    const text = native.buffer.toString(bytes, 1).split('\n')[found[2] - 1];
    if (text === undefined) return '';
    return `${found[1]}:${found[2]}\n${text}\n${' '.repeat(Math.max(found[3] - 1, 0))}^\n\n`;
}

function describe(error) {
    const isError = kind(error) === classes.ERROR || error instanceof Error;
    const write = text => os.write_raw(2, text);
    try {
        const { inspect } = shared.require('internal/util/inspect');
        if (isError) {
            const arrow = sourceLine(typeof error.stack === 'string' ? error.stack : '');
            write(`${arrow}${inspect(error, { colors: false })}\n`);
        } else {
            const text = typeof error === 'object' && error !== null || typeof error === 'function'
                ? inspect(error) : inspect(error);
            write(`Uncaught:\n${text}\n(Use \`node --trace-uncaught ...\` to show where the ` +
                'exception was thrown)\n');
        }
    } catch {
        write(`${error?.stack ?? error}\n`);
    }
    write(`\nNode.js ${process.version}\n`);
}

// An exception that nothing has caught: the program's handlers see it, or it ends the program.
shared.uncaught = (error, fromPromise = false) => {
    const handler = process._fatalException;
    if (typeof handler !== 'function') {
        describe(error);
        os.exit(6);
    }
    let handled;
    try {
        handled = handler.call(process, error, fromPromise);
    } catch (second) {
        describe(second);
        os.exit(7);
    }
    if (handled !== false) return;
    describe(error);
    const info = process[shared.binding('util').privateSymbols.exit_info_private_symbol];
    os.exit(info[2] ? info[1] : 1);
};
native.loop.setup(3, error => shared.uncaught(error));

// The engine asks Error.prepareStackTrace of a program, but not the library's own.
shared.afterBootstrap = () => {
    const { get, set } = shared.errorAccessor;
    const standard = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')?.value;
    let current = standard;
    Object.defineProperty(Error, 'prepareStackTrace', {
        configurable: true, enumerable: false,
        get: () => current,
        set(value) {
            current = value;
            set.call(Error, value === standard ? undefined : value);
        },
    });
};
shared.errorAccessor = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');

// A place in a stack has what programs ask of V8's.
const sites = function () {
    const { get, set } = shared.errorAccessor, before = get.call(Error);
    set.call(Error, (error, list) => list);
    const { stack } = new Error();
    set.call(Error, before);
    return stack;
};
const Site = Object.getPrototypeOf(sites()[0]);
const methods = {
    getThis: () => undefined, getTypeName: () => null, getMethodName: () => null,
    getEvalOrigin: () => undefined, getPromiseIndex: () => null, getScriptHash: () => '',
    isToplevel: () => true, isEval: () => false, isAsync: () => false, isPromiseAll: () => false,
    getScriptNameOrSourceURL() { return this.getFileName(); },
    getEnclosingLineNumber() { return this.getLineNumber(); },
    getEnclosingColumnNumber() { return this.getColumnNumber(); },
    toString() {
        const name = this.getFunctionName();
        const place = this.isNative() ? 'native'
            : `${this.getFileName()}:${this.getLineNumber()}:${this.getColumnNumber()}`;
        return name ? `${name} (${place})` : place;
    },
};
for (const name in methods)
    Object.defineProperty(Site, name, { value: methods[name], writable: true, configurable: true });

// The stack of an object that is no error is made when it is asked for, as the library expects.
let prepare;
const capture = Error.captureStackTrace;
Error.captureStackTrace = function captureStackTrace(object, from = captureStackTrace) {
    if (kind(object) === classes.ERROR || typeof object !== 'object' || object === null)
        return void capture(object, from);
    const { get, set } = shared.errorAccessor, before = get.call(Error);
    set.call(Error, (error, list) => list);
    try {
        capture(object, from);
    } finally {
        set.call(Error, before);
    }
    let value = object.stack, made = !prepare || !Array.isArray(value);
    Object.defineProperty(object, 'stack', {
        configurable: true, enumerable: false,
        get() {
            if (!made) made = true, value = prepare(globalThis, object, value);
            return value;
        },
        set(other) { made = true, value = other; },
    });
    return undefined;
};
Object.defineProperty(Error, 'captureStackTrace', { enumerable: false });

const nothing = () => {};
bindings.trace_events = () => ({
    available: false, getEnabledCategories: nothing, setTraceCategoryStateUpdateHandler: nothing,
    getCategoryEnabledBuffer: () => new Uint8Array(1), isTraceCategoryEnabled: () => false,
    trace: nothing, setLog: nothing,
});
bindings.mksnapshot = () => ({
    setSerializeCallback: nothing, setDeserializeCallback: nothing,
    setDeserializeMainFunction: nothing, isBuildingSnapshotBuffer: new Uint8Array(1),
    runEmbedderPreload: nothing, compileSerializeMain: nothing,
    anonymousMainPath: '__node_anonymous_main',
});
bindings.permission = () => ({ has: () => true });
bindings.report = () => new Proxy({}, { get: () => nothing });
bindings.sea = () => ({ isSea: () => false, isExperimentalSeaWarningNeeded: () => false, getAsset: nothing });
bindings.wasm_web_api = () => ({ setImplementation: nothing });
bindings.heap_utils = () => ({});
bindings.inspector = () => ({ isEnabled: () => false, console: {}, setConsoleExtensionInstaller: nothing });
bindings.watchdog = () => ({ TraceSigintWatchdog: class { start() {} stop() {} } });
bindings.internal_only_v8 = () => ({});
bindings.profiler = () => ({});
bindings.wasi = () => ({});
bindings.v8 = () => {
    const numbers = new Float64Array(14), code = new Float64Array(4), space = new Float64Array(5);
    return {
        heapStatisticsBuffer: numbers, heapCodeStatisticsBuffer: code, heapSpaceStatisticsBuffer: space,
        binding: {}, cachedDataVersionTag: () => 0, setHeapSnapshotNearHeapLimit: nothing,
        updateHeapStatisticsBuffer() {
            const [size, used] = engine.memory();
            numbers.set([size, 0, size, 2 ** 31, used, 2 ** 31, size, size, 0, 1, 0, 0, 0, 0]);
        },
        updateHeapCodeStatisticsBuffer: nothing, updateHeapSpaceStatisticsBuffer: nothing,
        kHeapSpaces: [], setFlagsFromString: nothing, startCpuProfile: nothing,
        GCProfiler: class {}, isStringOneByteRepresentation: text => !/[^\0-\xff]/.test(text),
        ...Object.fromEntries(['kTotalHeapSizeIndex', 'kTotalHeapSizeExecutableIndex',
            'kTotalPhysicalSizeIndex', 'kTotalAvailableSize', 'kUsedHeapSizeIndex',
            'kHeapSizeLimitIndex', 'kMallocedMemoryIndex', 'kPeakMallocedMemoryIndex',
            'kDoesZapGarbageIndex', 'kNumberOfNativeContextsIndex', 'kNumberOfDetachedContextsIndex',
            'kTotalGlobalHandlesSizeIndex', 'kUsedGlobalHandlesSizeIndex', 'kExternalMemoryIndex',
        ].map((name, index) => [name, index])),
    };
};
