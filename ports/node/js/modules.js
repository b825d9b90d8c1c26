// Scripts, functions of source text, contexts of the module vm, and modules of ECMAScript.
'use strict';
const { engine, modules } = native;
const { bindings, binding } = shared;
const { privateSymbols } = binding('util');
const symbols = binding('symbols');
const hostSymbol = privateSymbols.host_defined_option_symbol;

// By the name of a file: the symbol by which the library knows how to import from there.
const referrers = new Map();

const mapComment = /\n\/\/[#@] ?sourceMappingURL=([^\s'"]+)[^\n]*\s*$/;
const sourceMap = source => mapComment.exec(source)?.[1];

// A global object of its own, whose properties are kept the same as those of the program's object.
class Context {
    constructor(object) {
        this.object = object;
        this.realm = engine.new_realm();
        this.global = engine.realm_global(this.realm);
        this.own = new Set(Reflect.ownKeys(this.global));
        this.seen = new Set();
        Object.defineProperty(this.global, 'globalThis', { value: this.global, writable: true, configurable: true });
    }
    enter() {
        for (const key of this.seen) if (!(key in this.object)) delete this.global[key];
        this.seen = new Set(Reflect.ownKeys(this.object));
        for (const key of this.seen) {
            const described = Object.getOwnPropertyDescriptor(this.object, key);
            try {
                Object.defineProperty(this.global, key, 'value' in described
                    ? { ...described, configurable: true } : {
                        configurable: true, enumerable: described.enumerable,
                        get: () => this.object[key], set: value => { this.object[key] = value; },
                    });
            } catch { /* one that the language keeps */ }
        }
    }
    leave() {
        for (const key of Reflect.ownKeys(this.global)) {
            if (this.own.has(key) && !this.seen.has(key)) continue;
            const described = Object.getOwnPropertyDescriptor(this.global, key);
            if (!('value' in described)) continue;
            const before = Object.getOwnPropertyDescriptor(this.object, key);
            if (before && 'value' in before && Object.is(before.value, described.value)) continue;
            try {
                this.object[key] = described.value;
            } catch { /* read only */ }
            this.seen.add(key);
        }
        for (const key of this.seen)
            if (!Object.hasOwn(this.global, key)) {
                delete this.object[key];
                this.seen.delete(key);
            }
    }
    run(work) {
        this.enter();
        try {
            return work(this.realm);
        } finally {
            this.leave();
        }
    }
}
const contextOf = object => object?.[privateSymbols.contextify_context_private_symbol];

const padded = (source, line, column) =>
    line > 0 || column > 0 ? '\n'.repeat(Math.max(line, 0)) + ' '.repeat(Math.max(column, 0)) + source : source;

class ContextifyScript {
    #source; #file;
    constructor(source, file, line = 0, column = 0, cachedData, produce, context, host) {
        source = padded(source, line, column);
        engine.check_script(source, file);
        this.#source = source;
        this.#file = file;
        this[hostSymbol] = typeof host === 'symbol' ? host : Symbol(file);
        referrers.set(file, this[hostSymbol]);
        this.sourceMapURL = sourceMap(source);
        if (cachedData) this.cachedDataRejected = true;
    }
    runInContext(object) {
        if (object === null || object === undefined) return engine.eval_script(this.#source, this.#file);
        return contextOf(object).run(realm => engine.realm_eval(realm, this.#source, this.#file));
    }
    createCachedData() { return shared.buffer(new ArrayBuffer(0)); }
}

const esModuleError = /^(Cannot use import statement|Unexpected token 'export'|unsupported keyword: export|import\.meta|expecting '\('|invalid use of 'import')/;
function compileCJS(source, file, isSeaMain, detect) {
    const params = ['exports', 'require', 'module', '__filename', '__dirname'];
    let function_, canParseAsESM = false;
    try {
        function_ = engine.compile(source, file, params);
    } catch (error) {
        if (error instanceof SyntaxError) canParseAsESM = isModule(source, file, error);
        if (!canParseAsESM || !detect) {
            // The text may still be a module that is imported.
            throw error;
        }
    }
    referrers.set(file, symbols.vm_dynamic_import_default_internal);
    return { __proto__: null, canParseAsESM, cachedDataRejected: false,
        sourceMapURL: sourceMap(source), function: function_ };
}
// Whether what is no CommonJS is a module.
function isModule(source, file) {
    if (!/\b(import|export|await)\b/.test(source)) return false;
    try {
        modules.module_compile(source, `${file}?module`);
        return true;
    } catch {
        return false;
    }
}

bindings.contextify = () => ({
    ContextifyScript,
    compileFunction(source, file, line, column, cachedData, produce, context, extensions, params, host) {
        source = padded(source, line, column);
        const inside = contextOf(context);
        const names = params ?? [];
        let function_;
        if (extensions?.length) {
            const outer = engine.compile(`with (arguments[0]) return function (${names.join()}) {${source}\n}`, file, []);
            function_ = outer(Object.assign({}, ...extensions));
        } else {
            function_ = inside ? inside.run(realm => engine.realm_compile(realm, source, file, names))
                : engine.compile(source, file, names);
        }
        referrers.set(file, host);
        return { __proto__: null, function: function_, sourceMapURL: sourceMap(source) };
    },
    compileFunctionForCJSLoader: compileCJS,
    containsModuleSyntax(source, file = '[eval]') {
        try {
            engine.compile(source, file, ['exports', 'require', 'module', '__filename', '__dirname']);
            return false;
        } catch (error) {
            return isModule(source, file);
        }
    },
    shouldRetryAsESM: (source, file) => isModule(source, file),
    makeContext(object, name, origin, strings, wasm, queue, host) {
        if (typeof object === 'symbol') object = {};
        Object.defineProperty(object, privateSymbols.contextify_context_private_symbol,
            { value: new Context(object) });
        object[hostSymbol] = host;
        return object;
    },
    startSigintWatchdog: () => true, stopSigintWatchdog: () => false, watchdogHasPendingSigint: () => false,
    measureMemory: () => Promise.reject(new Error('measureMemory is not there')),
    constants: { measureMemory: { mode: { SUMMARY: 0, DETAILED: 1 }, execution: { DEFAULT: 0, EAGER: 1 } } },
});

let initializeMeta;
class ModuleWrap {
    #module; #linked = []; #evaluate; #source; #awaits; #described = false;
    constructor(url, context, source, line, column, host) {
        this.url = url;
        if (Array.isArray(source)) {
            const steps = line;
            this.#module = modules.module_synthetic(url, source, () => { steps.call(this); });
            this.synthetic = true;
            this[hostSymbol] = Symbol(url);
        } else {
            this.#module = modules.module_compile(padded(source, line, column), url);
            this.sourceMapURL = sourceMap(source);
            this[hostSymbol] = typeof host === 'symbol' ? host : Symbol(url);
            referrers.set(url, this[hostSymbol]);
        }
        Object.defineProperty(this, 'synthetic', { value: this.synthetic === true, enumerable: false });
    }
    getModuleRequests() {
        return modules.module_requests(this.#module).map(([specifier, attributes]) => Object.freeze({
            __proto__: null, specifier, attributes: Object.freeze({ __proto__: null, ...attributes }),
        }));
    }
    link(specifiers, list) {
        this.#linked = Array.from(list);
        modules.module_link(this.#module, this.#linked.map(wrap => wrap.#module));
    }
    #describe(seen = new Set()) {
        if (seen.has(this)) return;
        seen.add(this);
        for (const wrap of this.#linked) wrap.#describe(seen);
        if (this.#described || this.synthetic) return;
        this.#described = true;
        const meta = modules.module_meta(this.#module);
        initializeMeta?.(this[hostSymbol], meta, this);
    }
    instantiate() { modules.module_instantiate(this.#module); }
    instantiateSync() { this.instantiate(); }
    evaluate() {
        this.#describe();
        return (this.#evaluate = modules.module_evaluate(this.#module));
    }
    evaluateSync() { return this.getNamespaceSync(this.evaluate()); }
    getNamespaceSync() {
        const [state, reason] = engine.promise_details(this.#evaluate ?? this.evaluate());
        if (state === 2) throw reason;
        if (state === 0) {
            const { codes } = shared.require('internal/errors');
            throw new codes.ERR_REQUIRE_ASYNC_MODULE();
        }
        return this.getNamespace();
    }
    isGraphAsync() {
        const look = (wrap, seen) => !seen.has(wrap) && seen.add(wrap) &&
            (modules.module_awaits(wrap.#module) || wrap.#linked.some(each => look(each, seen)));
        return look(this, new Set());
    }
    async() { return this.isGraphAsync(); }
    getNamespace() { return modules.module_namespace(this.#module); }
    getStatus() { return modules.module_status(this.#module); }
    getError() { return modules.module_error(this.#module); }
    setExport(name, value) { modules.module_export(this.#module, name, value); }
    getStaticDependencySpecifiers() { return modules.module_requests(this.#module).map(([name]) => name); }
    createCachedData() { return shared.buffer(new ArrayBuffer(0)); }
}

bindings.module_wrap = () => ({
    ModuleWrap,
    kUninstantiated: 0, kInstantiating: 1, kInstantiated: 2, kEvaluating: 3, kEvaluated: 4, kErrored: 5,
    kSourcePhase: 1, kEvaluationPhase: 2,
    setInitializeImportMetaObjectCallback(function_) { initializeMeta = function_; },
    setImportModuleDynamicallyCallback(function_) {
        engine.on_import((from, specifier, attributes, resolve, reject) => {
            const name = from === '<evalScript>' || from === '<input>' ? undefined : from;
            const symbol = referrers.get(from) ?? symbols.vm_dynamic_import_default_internal;
            function_(symbol, specifier, { __proto__: null, ...attributes }, name)
                .then(module => resolve(module), reject);
        });
    },
    createRequiredModuleFacade(wrap) {
        const names = Object.keys(wrap.getNamespace());
        const original = wrap.getNamespace();
        const facade = new ModuleWrap('node:internal/require_module_default_facade', undefined,
            [...names, '__esModule'], function () {
                for (const name of names) this.setExport(name, original[name]);
                this.setExport('__esModule', true);
            });
        facade.instantiate();
        facade.evaluate();
        return facade.getNamespace();
    },
    throwIfPromiseRejected(promise) {
        const [state, reason] = engine.promise_details(promise);
        if (state === 2) throw reason;
    },
});
