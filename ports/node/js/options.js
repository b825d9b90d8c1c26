// The command line and NODE_OPTIONS.
'use strict';
const { bindings } = shared;

// Options that the program knows, by what they take. Of those that take nothing, the ones that
// begin with + are on unless --no-... is given.
const flags = `--abort-on-uncaught-exception --allow-addons --allow-child-process --allow-wasi
    --allow-worker --build-snapshot --check --cpu-prof --+deprecation --enable-fips
    --enable-source-maps --entry-url --+experimental-detect-module --experimental-eventsource
    --+experimental-fetch --+experimental-global-customevent --+experimental-global-navigator
    --+experimental-global-webcrypto --experimental-import-meta-resolve
    --experimental-network-imports --experimental-network-inspection --experimental-permission
    --+experimental-print-required-tla --+experimental-repl-await
    --+experimental-require-module --experimental-shadow-realm --experimental-strip-types
    --experimental-test-coverage --experimental-test-module-mocks --experimental-test-snapshots
    --experimental-vm-modules --experimental-wasm-modules --experimental-websocket
    --experimental-worker --expose-internals --expose-gc --expose_gc --allow-natives-syntax --force-async-hooks-checks
    --force-context-aware --force-fips --force-node-api-uncaught-exceptions-policy --frozen-intrinsics
    --+global-search-paths --heap-prof --insecure-http-parser --inspect --inspect-brk
    --inspect-brk-node --interactive --+network-family-autoselection --node-snapshot
    --no-addons --pending-deprecation --preserve-symlinks --preserve-symlinks-main --print --print-help
    --prof-process --report-compact --report-on-fatalerror --report-on-signal
    --report-uncaught-exception --test --test-force-exit --test-only --throw-deprecation
    --trace-deprecation --trace-exit --trace-promises --trace-require-module --trace-sigint
    --trace-sync-io --trace-tls --trace-uncaught --trace-warnings --track-heap-objects
    --use-bundled-ca --use-openssl-ca --use-system-ca --verify-base-objects --version --v8-options
    --+warnings --watch --watch-preserve-output --zero-fill-buffers
    --experimental-sea-config --tls-max-v1.2 --tls-max-v1.3 --tls-min-v1.0 --tls-min-v1.1 --tls-min-v1.2
    --tls-min-v1.3 --experimental-default-config-file --harmony --harmony-shadow-realm
    --experimental-async-context-frame --jitless --interpreted-frames-native-stack`;
const texts = `--conditions --cpu-prof-dir --cpu-prof-name --diagnostic-dir --disable-proto
    --dns-result-order --env-file --es-module-specifier-resolution --eval --experimental-default-type
    --experimental-policy --experimental-sea-config --heap-prof-dir --heap-prof-name
    --heapsnapshot-signal --icu-data-dir --input-type --localstorage-file --openssl-config
    --policy-integrity --redirect-warnings --report-dir --report-directory --report-filename
    --report-signal --test-isolation --title --tls-cipher-list --tls-keylog
    --trace-event-categories --trace-event-file-pattern --trace-require-module --unhandled-rejections
    --experimental-specifier-resolution --run`;
const lists = `--allow-fs-read --allow-fs-write --disable-warning --experimental-loader --import
    --require --security-revert --test-name-pattern --test-skip-pattern --test-reporter
    --test-reporter-destination --test-coverage-exclude --test-coverage-include --watch-path
    --conditions --env-file`;
const numbers = { '--heapsnapshot-near-heap-limit': 0, '--max-http-header-size': 16384,
    '--network-family-autoselection-attempt-timeout': 250, '--secure-heap': 0, '--secure-heap-min': 2,
    '--stack-trace-limit': 10, '--test-concurrency': 0, '--test-timeout': 0, '--v8-pool-size': 4,
    '--test-coverage-branches': 0, '--test-coverage-functions': 0, '--test-coverage-lines': 0,
    '--max-old-space-size': 0, '--max-semi-space-size': 0, '--stack-size': 0,
    '--heap-prof-interval': 0, '--cpu-prof-interval': 0, '--experimental-test-isolation': 0 };
const aliases = { '-e': '--eval', '-p': '--print', '-pe': '--print', '-c': '--check', '-i': '--interactive', '-r': '--require',
    '-v': '--version', '-h': '--print-help', '--help': '--print-help', '-C': '--conditions',
    '--loader': '--experimental-loader', '--es-module-specifier-resolution': '--experimental-specifier-resolution',
    '--inspect-brk': '--inspect-brk', '--debug-port': '--inspect-port' };

const defaults = { __proto__: null };
for (const word of flags.split(/\s+/)) {
    const on = word.includes('+'), name = word.replace('+', '');
    defaults[name] = on;
}
for (const name of texts.split(/\s+/)) defaults[name] = '';
for (const name of lists.split(/\s+/)) defaults[name] = [];
Object.assign(defaults, numbers, {
    '--inspect-port': { host: '127.0.0.1', port: 9229 }, '--trace-require-module': false,
    '--stack-trace-limit': 10, '--test-isolation': 'process', '--experimental-global-navigator': false,
    '--eval': undefined, '[has_eval_string]': false, '--unhandled-rejections': '',
});
const options = (shared.options = { __proto__: null, ...defaults });

// Options that protect, and would not here: a program shall not start in the belief that they do.
const refused = new Set(['--experimental-permission', '--disable-proto', '--enable-fips', '--force-fips', '--secure-heap']);

function usage(message) {
    native.os.write_raw(2, `${native.argv[0]}: ${message}\n`);
    native.os.exit(9);
}

// Reads one option, which may take the next word. How many words it was.
function take(words, at, fromEnvironment) {
    const word = words[at];
    let [, name, value] = /^([^=]*)=?([^]*)$/.exec(word);
    const given = word.includes('=');
    name = name.replaceAll('_', '-');
    if (name === '-pe' || name === '-ep') name = '-p';
    if (name === '-p' || name === '--print') {
        options['--print'] = true;
        if (!given && (at + 1 >= words.length || words[at + 1].startsWith('-') && words[at + 1].length > 1)) return 1;
        options['--eval'] = given ? value : words[at + 1];
        options['[has_eval_string]'] = true;
        return given ? 1 : 2;
    }
    name = aliases[name] ?? name;
    let off = false;
    if (name.startsWith('--no-') && !(name in defaults)) off = true, name = `--${name.slice(5)}`;
    if (!(name in defaults)) {
        if (/^--(max|min|stack|gc|harmony|turbo|sparkplug|opt|perf|prof|trace-gc|log|random-seed|single-threaded|huge|wasm)/.test(name)) return 1;
        usage(`bad option: ${word}`);
    }
    if (!off && refused.has(name)) usage(`${name} is not there in this node`);
    const kind = defaults[name];
    if (typeof kind === 'boolean') {
        options[name] = !off;
        if (off) options[`--no-${name.slice(2)}`] = true;
        return 1;
    }
    let used = 1;
    if (!given) {
        if (at + 1 >= words.length || (words[at + 1].startsWith('-') && words[at + 1] !== '-' && name !== '--eval'))
            usage(`${word} requires an argument`);
        value = words[at + 1];
        used = 2;
    }
    if (Array.isArray(kind)) (options[name] = [...options[name]]).push(value);
    else if (typeof kind === 'number') options[name] = Number(value);
    else options[name] = value;
    if (name === '--eval') options['[has_eval_string]'] = true;
    return used;
}

const words = native.argv;
const fromEnvironment = (native.os.get_env('NODE_OPTIONS') ?? '').match(/(?:[^\s"]|"(?:\\.|[^"])*")+/g) ?? [];
for (let at = 0; at < fromEnvironment.length;)
    at += take(fromEnvironment.map(word => word.replace(/^"|"$/g, '')), at, true);
let at = 1;
while (at < words.length && words[at].startsWith('-') && words[at] !== '-') {
    if (words[at] === '--') {
        at++;
        break;
    }
    at += take(words, at);
}
shared.execArgv = words.slice(1, at).filter(word => word !== '--' || words.indexOf('--') >= at);
shared.argv = [words[0], ...words.slice(at)];
if (options['--test'] || options['--check']) { /* what follows are files */ }
for (const [name, value] of Object.entries(defaults))
    if (typeof value === 'boolean' && !name.startsWith('--no-'))
        options[`--no-${name.slice(2)}`] = !options[name];

bindings.options = () => ({
    getCLIOptionsValues: () => options,
    getCLIOptionsInfo() {
        const table = new Map();
        for (const [name, value] of Object.entries(defaults))
            table.set(name, {
                helpText: '', envVarSettings: 0, defaultIsTrue: value === true,
                type: typeof value === 'boolean' ? 2 : typeof value === 'number' ? 3
                    : Array.isArray(value) ? 7 : 5,
            });
        return { options: table, aliases: new Map(Object.entries(aliases).map(([a, b]) => [a, [b]])) };
    },
    getEmbedderOptions: () => ({
        shouldNotRegisterESMLoader: false, noGlobalSearchPaths: false, noBrowserGlobals: false,
        hasEmbedderPreload: false,
    }),
    envSettings: { kAllowedInEnvvar: 0, kDisallowedInEnvvar: 1 },
    types: { kNoOp: 0, kV8Option: 1, kBoolean: 2, kInteger: 3, kUInteger: 4, kString: 5,
        kHostPort: 6, kStringList: 7 },
    noGlobalSearchPaths: false, shouldNotRegisterESMLoader: false,
});
