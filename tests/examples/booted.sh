#!/usr/bin/env bash
# booted.sh WORK SOURCE: a machine with a systemd of its own, made of this machine's files by an overlay, runs
# WORK/install in a chroot, then boots and runs WORK/steps, whose output is WORK/said. Nothing here is changed.
# Started in a mount namespace of its own (unshare --mount).
set -eu
work=$1 source=$2 root=$1/root
mkdir -p "$work/layer" "$root"
mount -t tmpfs tmpfs "$work/layer"
mkdir "$work/layer/upper" "$work/layer/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/layer/upper,workdir=$work/layer/work" "$root"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
cp -r "$source" "$root/srv/source"
cp -r "$source/examples/service" "$root/srv/service"
cp "$work/steps" "$root/srv/steps"
chroot "$root" bash -euc "cd /srv/service; $(cat "$work/install")"
umount "$root/proc" "$root/dev"
: >"$root/etc/machine-id"
cat >"$root/etc/systemd/system/steps.service" <<'UNIT'
[Unit]
Requires=basic.target dbus.service
After=basic.target dbus.service
[Service]
Type=oneshot
StandardOutput=file:/srv/said
StandardError=file:/srv/said
ExecStart=/bin/bash -eux /srv/steps
ExecStopPost=/bin/systemctl poweroff --no-block
UNIT
systemd-nspawn --quiet --register=no --keep-unit --machine "dafka-$$" --directory "$root" --boot --link-journal=no \
    --private-network -- systemd.unit=steps.service >"$work/boot.log" 2>&1 </dev/null || true
cp "$root/srv/said" "$work/said"
