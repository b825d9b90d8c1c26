//! Texts about System V objects: the files of /proc/sysvipc. They list those of the reader's
//! namespace.

use std::fmt::Write;

use lind_abi::Result;

use super::Subject;
use crate::ipc;

pub(super) fn shm(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let mut text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n".to_owned();
    let kernel = subject.cx.kernel;
    for (id, object) in kernel.ipc.lock().segments.objects(subject.cx) {
        let status = object.value.to_guest(&object.permissions, ipc::attachments(kernel, id));
        let perm = &status.perm;
        let _ = writeln!(
            text,
            "{:10} {id:10}  {:4o} {:21} {:5} {:5}  {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10} {:21} {:21}",
            perm.key,
            perm.mode,
            status.segsz,
            status.cpid,
            status.lpid,
            status.nattch,
            perm.uid,
            perm.gid,
            perm.cuid,
            perm.cgid,
            status.atime,
            status.dtime,
            status.ctime,
            object.value.resident(),
            0
        );
    }
    Ok(text.into_bytes())
}

pub(super) fn sem(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let mut text = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n".to_owned();
    for (id, object) in subject.cx.kernel.ipc.lock().sets.objects(subject.cx) {
        let status = object.value.to_guest(&object.permissions);
        let perm = &status.perm;
        let _ = writeln!(
            text,
            "{:10} {id:10}  {:4o} {:10} {:5} {:5} {:5} {:5} {:10} {:10}",
            perm.key, perm.mode, status.nsems, perm.uid, perm.gid, perm.cuid, perm.cgid, status.otime, status.ctime
        );
    }
    Ok(text.into_bytes())
}

pub(super) fn msg(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let mut text = "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n".to_owned();
    for (id, object) in subject.cx.kernel.ipc.lock().queues.objects(subject.cx) {
        let status = object.value.to_guest(&object.permissions);
        let perm = &status.perm;
        let _ = writeln!(
            text,
            "{:10} {id:10}  {:4o}  {:10} {:10} {:5} {:5} {:5} {:5} {:5} {:5} {:10} {:10} {:10}",
            perm.key,
            perm.mode,
            status.cbytes,
            status.qnum,
            status.lspid,
            status.lrpid,
            perm.uid,
            perm.gid,
            perm.cuid,
            perm.cgid,
            status.stime,
            status.rtime,
            status.ctime
        );
    }
    Ok(text.into_bytes())
}

/// The limits of ipc(5), as /proc/sys/kernel has them.
pub(super) fn msgmax(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{}\n", ipc::LONGEST).into_bytes())
}

pub(super) fn msgmnb(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{}\n", ipc::ROOM).into_bytes())
}

/// Objects of a kind.
pub(super) fn most(_: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{}\n", ipc::MOST).into_bytes())
}

pub(super) fn semaphores(_: &Subject<'_>) -> Result<Vec<u8>> {
    let (most, operations) = (ipc::MOST_IN_SET, ipc::MOST_OPERATIONS);
    Ok(format!("{most}\t{}\t{operations}\t{}\n", ipc::MOST_SEMAPHORES, ipc::MOST).into_bytes())
}
