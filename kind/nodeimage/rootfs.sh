#!/bin/sh
# Runs as a hook of mmdebstrap with the root file system's folder as its argument: removes from it what must not start or
# cannot work in a container. The list is that of the Dockerfile of kind's base image (images/base in kind's repository).
set -eu
root=$1

find "$root/lib/systemd/system/sysinit.target.wants/" -name systemd-tmpfiles-setup.service -delete
rm -f "$root"/lib/systemd/system/multi-user.target.wants/*
rm -f "$root"/etc/systemd/system/*.wants/*
rm -f "$root"/lib/systemd/system/local-fs.target.wants/*
rm -f "$root"/lib/systemd/system/sockets.target.wants/*udev*
rm -f "$root"/lib/systemd/system/sockets.target.wants/*initctl*
rm -f "$root"/lib/systemd/system/basic.target.wants/*

# systemd runs every generator at each daemon-reload. None of them finds anything in a container:
# they read /etc/fstab, the kernel's command line, partitions and old init scripts.
rm -f "$root"/lib/systemd/system-generators/*

# mmdebstrap copies these from the machine that it runs on.
rm -f "$root/etc/resolv.conf" "$root/etc/hostname"
