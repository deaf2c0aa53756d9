//! Who may do what with a file or directory that takes the place of another one.

use std::fs::{self, File};
use std::path::Path;

/// Gives what will replace `target` its owner, its group and its permissions, as far as the system lets us.
///
/// It never gets wider: set-uid, set-gid and sticky bits are not carried over, and permissions of a group, or of an ACL, that
/// cannot be kept are dropped. `file` has been made for its owner alone, so that whatever fails here leaves it narrow.
pub(super) fn keep(file: &File, target: &Path, old: &fs::Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        // Only root may give files away, and others only to groups of theirs.
        if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
            let _ = fchown(file, None, Some(old.gid()));
        }
        let is_same_group = file.metadata().is_ok_and(|new| new.gid() == old.gid());
        let mode = match acl::of(target) {
            Some(acl) if is_same_group && acl::set(file, &acl) => return,
            // What the mode says of a group is then the most that anybody in the list has.
            Some(_) => old.mode() & 0o700,
            None if is_same_group => old.mode() & 0o777,
            None => without_group(old.mode()),
        };
        acl::remove(file);
        let _ = file.set_permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    {
        let _ = (file.set_permissions(old.permissions()), target);
    }
}

/// What is left of permissions in another group: those of the old one are among the others now, and get no more than they had.
#[cfg(unix)]
fn without_group(mode: u32) -> u32 {
    (mode & 0o700) | (mode & (mode >> 3) & 0o007)
}

/// The lists of POSIX, of whoever may do more or less than the mode says.
#[cfg(target_os = "linux")]
mod acl {
    use std::fs::File;
    use std::path::Path;

    use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};

    use crate::prelude::*;

    const NAME: &str = "system.posix_acl_access";
    /// The longest value that the system holds.
    const LONGEST: usize = 64 << 10;

    pub(super) fn of(path: &Path) -> Option<Vec<u8>> {
        let mut list = vec![0; LONGEST];
        let len = getxattr(path, NAME, &mut list[..]).ok()?;
        list.truncate(len);
        Some(list)
    }

    pub(super) fn set(file: &File, list: &[u8]) -> bool {
        fsetxattr(file, NAME, list, XattrFlags::empty()).is_ok()
    }

    /// A new file has got one where its directory has one for what is made in it.
    pub(super) fn remove(file: &File) {
        let _ = fremovexattr(file, NAME);
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod acl {
    use std::fs::File;
    use std::path::Path;

    use crate::prelude::*;

    pub(super) fn of(_: &Path) -> Option<Vec<u8>> {
        None
    }

    pub(super) fn set(_: &File, _: &[u8]) -> bool {
        false
    }

    pub(super) fn remove(_: &File) {}
}

#[cfg(all(test, unix))]
mod tests {
    use super::without_group;

    #[test]
    fn another_group_gets_nothing_and_the_old_one_no_more_than_it_had() {
        for (mode, left) in [
            (0o640, 0o600),
            (0o644, 0o604),
            (0o604, 0o600),
            (0o625, 0o600),
            (0o6777, 0o707),
            (0o600, 0o600),
        ] {
            assert_eq!(without_group(mode), left, "{mode:o}");
        }
    }
}
