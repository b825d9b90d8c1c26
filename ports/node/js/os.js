// The machine.
'use strict';
const { os } = native;
const { bindings } = shared;

bindings.os = () => ({
    isBigEndian: false,
    getHostname: () => os.names()[4],
    getLoadAvg: into => into.set(os.memory().slice(6, 9)),
    getUptime: () => os.memory()[5],
    getTotalMem: () => os.memory()[1],
    getFreeMem: () => os.memory()[2],
    getAvailableParallelism: () => os.memory()[9],
    getCPUs: () => os.processors().flat(),
    getInterfaceAddresses: os.interfaces,
    getHomeDirectory() {
        const home = os.get_env('HOME');
        if (home) return home;
        const user = os.user(-1);
        return typeof user === 'number' ? '/' : user.homedir;
    },
    getUserInfo(options, context) {
        const user = os.user(-1);
        if (typeof user === 'number') {
            Object.assign(context, { errno: user, code: native.fs.error_name(user),
                message: native.fs.error_text(user), syscall: 'uv_os_get_passwd' });
            return undefined;
        }
        if (options?.encoding === 'buffer') {
            const { Buffer } = shared.require('buffer');
            for (const name of ['username', 'homedir', 'shell']) user[name] = Buffer.from(user[name]);
        }
        return user;
    },
    setPriority(pid, priority, context) {
        const result = os.priority(pid, priority);
        if (result) Object.assign(context, { errno: result, code: native.fs.error_name(result),
            message: native.fs.error_text(result), syscall: 'uv_os_setpriority' });
        return result;
    },
    getPriority(pid, context) {
        const [result, value] = os.priority(pid);
        if (result) Object.assign(context, { errno: result, code: native.fs.error_name(result),
            message: native.fs.error_text(result), syscall: 'uv_os_getpriority' });
        return value;
    },
    getOSInformation: () => os.names().slice(0, 4),
});
