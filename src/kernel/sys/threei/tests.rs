//! A grate that passes interposition calls on lends its clients nothing by that.

use lind_abi::layout::{LindArg, LindCall};
use lind_abi::{Call, Errno, Owners, Word, nr};

use crate::call::make_syscall;
use crate::runtime::Served;
use crate::testing::{NoHop, World, both_walls};

/// A call of `client` that its grate `w` relays.
fn passed_on(w: &World, client: &World, number: u32, values: [i64; 6]) -> Result<i64, Errno> {
    made_instead(w, client, number, values, values)
}

/// A call of `client` that its grate `w` makes with other values: as a call on the client, or on
/// itself as Lind's grates do.
fn made_instead(w: &World, client: &World, number: u32, values: [i64; 6], instead: [i64; 6]) -> Result<i64, Errno> {
    let id = client.thread.cage.id;
    let words = Word::six(values.map(i64::cast_unsigned));
    let call = Call { nr: number, caller: id, target: id, values: &words, owners: Owners::All(id) };
    let served = Served { call: &call, client: &client.thread };
    let made = |target: u32| {
        let args = instead.map(|value| (value.cast_unsigned(), u64::from(id.0)));
        make_syscall(&w.kernel, &w.thread, Some(&served), &NoHop::default(), number, target.into(), args)
    };
    let result = made(id.0);
    if result < 0 {
        assert_eq!(made(w.thread.cage.id.0), result, "{number}");
    }
    Errno::from_wire(result).map_or(Ok(result), Err)
}

fn id(of: &World) -> i64 {
    i64::from(of.thread.cage.id.0)
}

#[test]
fn clients_get_no_memory_by_their_grate() {
    both_walls(|w| {
        let (client, other) = (w.sibling(), w.sibling());
        let child = client.sibling();
        let copy = |to: &World, from: &World| {
            let (at, what) = (to.value(&1_u64), from.value(&2_u64));
            passed_on(w, &client, nr::copy_data_between_cages, [at, what, 8, 0, id(to), id(from)])
        };
        assert_eq!(copy(&client, w), Err(Errno::EPERM));
        assert_eq!(copy(w, &client), Err(Errno::EPERM));
        assert_eq!(copy(&client, &other), Err(Errno::EPERM));
        assert_eq!(copy(&other, &client), Err(Errno::EPERM));
        assert_eq!(copy(&client, &client), Ok(8));
        assert_eq!(copy(&child, &client), Ok(8));
    });
}

#[test]
fn clients_change_no_table_by_their_grate() {
    both_walls(|w| {
        let (client, other) = (w.sibling(), w.sibling());
        let child = client.sibling();
        let register = |values| passed_on(w, &client, nr::register_handler, values);
        for number in [i64::from(nr::getpid), 0xffff_ffff] {
            w.ok(nr::register_handler, &[id(&client), number, id(w), 1, 0]);
            for flags in [0, 1] {
                assert_eq!(register([id(&client), number, id(w), 2, flags, 0]), Err(Errno::EPERM));
                assert_eq!(register([id(&other), number, id(w), 2, flags, 0]), Err(Errno::EPERM));
                assert_eq!(register([id(&other), number, id(&client), 2, flags, 0]), Err(Errno::EPERM));
            }
            for flags in [2, 3, 0x1_0000_0002] {
                assert_eq!(register([id(&client), number, 0, 0, flags, 0]), Err(Errno::EPERM));
            }
        }
        assert_eq!(register([id(&child), 500, id(&client), 2, 0, 0]), Ok(0));
        assert_eq!(register([id(&child), 500, 0, 0, 2, 0]), Ok(0));

        let copy = |source: &World, target: &World| {
            passed_on(w, &client, nr::copy_handler_table_to_cage, [id(source), id(target), 0, 0, 0, 0])
        };
        assert_eq!(copy(w, &client), Err(Errno::EPERM));
        assert_eq!(copy(&client, w), Err(Errno::EPERM));
        assert_eq!(copy(&other, &client), Err(Errno::EPERM));
        assert_eq!(copy(&client, &other), Err(Errno::EPERM));
        assert_eq!(copy(&client, &child), Ok(0));
    });
}

/// A grate that changes numbers or entries in its clients' registrations, as clamps do, gives them
/// no further rights, either.
#[test]
fn clients_register_no_more_by_a_grate_that_changes_it() {
    both_walls(|w| {
        let (client, other) = (w.sibling(), w.sibling());
        let child = client.sibling();
        let register = |asked: [i64; 3], instead: [i64; 3]| {
            let values = |[target, number, grate]: [i64; 3], entry| [target, number, grate, entry, 0, 0];
            made_instead(w, &client, nr::register_handler, values(asked, 2), values(instead, 3))
        };
        for (target, grate) in [(&other, &client), (&other, &other), (&client, &other), (&client, &client), (w, &other)]
        {
            let (target, grate) = (id(target), id(grate));
            for number in [500, 3000, 0xffff_ffff] {
                assert_eq!(register([target, 500, grate], [target, number, grate]), Err(Errno::EPERM));
            }
        }
        assert_eq!(register([id(&client), 500, id(&other)], [id(w), 3000, id(&other)]), Err(Errno::EPERM));
        assert_eq!(register([id(&child), 500, id(&client)], [id(&other), 500, id(&client)]), Err(Errno::EPERM));
        assert_eq!(register([id(&child), 500, id(&client)], [id(&child), 3000, id(&client)]), Ok(0));
        assert_eq!(register([id(&child), 500, id(&client)], [id(w), 3000, id(&client)]), Ok(0));
        // A grate may still register its own functions.
        assert_eq!(register([id(&child), 500, id(&client)], [id(&child), 501, id(w)]), Ok(0));
    });
}

#[test]
fn clients_make_no_calls_by_their_grate() {
    both_walls(|w| {
        let (client, other) = (w.sibling(), w.sibling());
        let child = client.sibling();
        let dup = |by: &World, on: &World, owner: &World| {
            let mut args = [0; 6].map(|value| LindArg { value, cage: id(on).cast_unsigned() });
            args[0].cage = id(owner).cast_unsigned();
            let wire = LindCall {
                nr: nr::dup,
                caller: id(by).cast_unsigned(),
                target: id(on).cast_unsigned(),
                args,
                ..LindCall::default()
            };
            passed_on(w, &client, nr::call_by, [client.value(&wire), 0, 0, 0, 0, 0])
        };
        assert_eq!(dup(w, w, w), Err(Errno::EPERM));
        assert_eq!(dup(w, &client, &client), Err(Errno::EPERM));
        assert_eq!(dup(&client, w, w), Err(Errno::EPERM));
        assert_eq!(dup(&client, &other, &other), Err(Errno::EPERM));
        assert_eq!(dup(&client, &client, w), Err(Errno::EPERM));
        assert_eq!(dup(&other, &other, &other), Err(Errno::EPERM));
        assert!(dup(&client, &client, &client).is_ok());
        assert!(dup(&client, &child, &child).is_ok());
        assert!(dup(&child, &child, &child).is_ok());
    });
}
