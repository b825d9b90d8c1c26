// Makes the process object and what the library finds by internalBinding, runs the library's own
// start, then the program, then the event loop. Returns the status to end with.
'use strict';
const { library, loop, os, engine } = native;
const bindings = { __proto__: null };
const values = { __proto__: null };
// Each of our files puts functions into `bindings`, by the binding's name, that make it.
const common = { bindings, binding, native };
function binding(name) {
    if (name in values) return values[name];
    const make = bindings[name];
    if (!make) throw new Error(`No such binding: ${name}`);
    return (values[name] = make());
}

const proto = Object.create(Object.prototype, {
    constructor: { value: function process() {}, writable: true, configurable: true },
});
const process = (common.process = Object.create(proto));
for (const part of ['options', 'core', 'hooks', 'process', 'buffer', 'text', 'fs', 'streams', 'net',
    'children', 'os', 'modules', 'url', 'messages', 'serialize', 'http', 'zlib', 'crypto'])
    library.load(`ours/${part}`)(native, common);
common.describeProcess();

const primordials = {};
const privateSymbols = binding('util').privateSymbols;
const symbols = binding('symbols');
const messages = {};
const perContext = {};
for (const [name, exports] of [['primordials', perContext], ['domexception', perContext],
    ['messageport', perContext]])
    library.load(`internal/per_context/${name}`)(exports, primordials, privateSymbols, symbols);
common.perContext = perContext;

const realm = library.load('internal/bootstrap/realm');
realm(process, name => { throw new Error(`No such binding: ${name}`); }, binding, primordials);
const { internalBinding, require } = common;
common.run = id => {
    const body = library.load(id);
    if (!body) throw new Error(`${id} is not in the library`);
    return body(process, require, internalBinding, primordials);
};
common.run('internal/bootstrap/node');
common.run('internal/bootstrap/web/exposed-wildcard');
common.run('internal/bootstrap/web/exposed-window-or-worker');
common.run('internal/bootstrap/switches/is_main_thread');
common.run('internal/bootstrap/switches/does_own_process_state');
common.afterBootstrap();

// Which of the library's programs it is, by the options.
function chosen() {
    const option = common.options;
    if (option['--print-help']) return 'print_help';
    if (option['--test']) return 'test_runner';
    if (option['--watch']) return 'watch_mode';
    if (option['--check']) return 'check_syntax';
    if (option['[has_eval_string]'] && !option['--interactive']) return 'eval_string';
    if (process.argv[1] !== undefined && process.argv[1] !== '-' && !option['--interactive'])
        return 'run_main_module';
    if (option['--interactive'] || binding('tty_wrap').isTTY(0)) return 'repl';
    return 'eval_stdin';
}

const exitInfo = process[privateSymbols.exit_info_private_symbol];
function emit(name) {
    try {
        process.emit(name, exitInfo[2] ? exitInfo[1] : process.exitCode ?? 0);
    } catch (error) {
        common.uncaught(error);
    }
}

if (common.options['--version']) {
    native.os.write_raw(1, `${process.version}\n`);
    return 0;
}
if (common.options['--v8-options']) return 0;
try {
    common.run(`internal/main/${chosen()}`);
} catch (error) {
    common.uncaught(error);
}
for (;;) {
    loop.run();
    emit('beforeExit');
    if (!loop.alive() && !common.ticking()) break;
}
if (!exitInfo[0]) {
    exitInfo[0] = 1;
    if (common.awaited?.()) exitInfo[2] || (exitInfo[1] = 13, exitInfo[2] = 1);
    emit('exit');
}
return exitInfo[2] ? exitInfo[1] : 0;
