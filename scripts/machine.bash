# Machines in folders, for scripts that try things where nothing is installed. Sourced by bash; needs `say` and `stop`.
#
#   need_debootstrap                        stops without root; installs debootstrap
#   make_place                              sets `place`, a new folder, and `machine`, where the system goes
#   bootstrap_into SUITE MIRROR PACKAGES    a minimal system in $machine; further arguments go to debootstrap
#   connect                                 name servers, proxies, certificates, /proc, /dev/shm
#   inside COMMAND                          runs it there, with the environment of the array `language`
#   finish                                  unmounts and removes all (with keep=1: says where it is); also runs at exit
place='' machine='' keep=${keep:-} language=(LANG=C.UTF-8)

need_debootstrap() {
  [ "$(id -u)" = 0 ] || stop "needs root: debootstrap makes devices and mounts"
  if ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || stop "needs debootstrap"
    say "installing debootstrap"
    { apt-get -q -y update && apt-get -q -y install --no-install-recommends debootstrap; } >/dev/null ||
      stop "could not install debootstrap"
  fi
  # apt's proxy is not debootstrap's: wget takes it from the environment.
  local proxy
  proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy 2>/dev/null || true)
  [ -z "$proxy" ] || export http_proxy="$proxy"
}

make_place() {
  place=$(mktemp -d "${TMPDIR:-/var/tmp}/safer-machine.XXXXXX")
  machine=$place/root
}

# SUITE: the first mirror that this machine's apt reads the suite from, in either of the two
# formats of sources; nothing if there is none (debootstrap then has its own default).
find_mirror() {
  local file suite=$1
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -f "$file" ] || continue
    sed -E 's/#.*//; s/^([[:space:]]*deb[[:space:]]+)\[[^]]*\]/\1/' "$file" |
      awk -v suite="$suite" '$1 == "deb" && $3 == suite { print $2; exit }'
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    awk -v suite="$suite" '
      function flush() {
        if (uri != "" && types ~ / deb( |$)/ && suites ~ " " suite "( |$)" && off == "") print uri
        uri = types = suites = off = ""
      }
      /^#/ { next }
      /^[ \t]*$/ { flush(); next }
      tolower($1) == "types:" { $1 = ""; types = $0 }
      tolower($1) == "uris:" { uri = $2 }
      tolower($1) == "suites:" { $1 = ""; suites = $0 }
      tolower($1) == "enabled:" && tolower($2) == "no" { off = 1 }
      END { flush() }' "$file"
  done
}

# shellcheck disable=SC2317 # runs by the trap, too
finish() {
  local mount
  [ -n "$place" ] || return 0
  for mount in dev/shm dev/pts proc; do
    while mountpoint -q "$machine/$mount"; do
      umount "$machine/$mount" || umount -l "$machine/$mount" || break
    done
  done
  if [ -n "$keep" ]; then
    say "kept: $machine"
  elif grep -q " $machine/" /proc/mounts; then
    say "something is still mounted below $machine; not removed"
  else
    rm -rf "$place"
  fi
  place=''
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bootstrap_into() { # SUITE MIRROR PACKAGES OPTION...: a minimal system in $machine
  local suite=$1 from=$2 packages=$3 start script=''
  shift 3
  start=$(date +%s)
  # Every release of Ubuntu is made by one script, which an older debootstrap knows by older names.
  [ -e "/usr/share/debootstrap/scripts/$suite" ] || script=/usr/share/debootstrap/scripts/gutsy
  say "making a minimal $suite from ${from:-the default mirror}"
  if ! debootstrap --variant=minbase --include="$packages" "$@" "$suite" "$machine" ${from:+"$from"} \
    ${script:+"$script"} >"$place/debootstrap.log" 2>&1; then
    tail -n 20 "$place/debootstrap.log" >&2
    say "debootstrap failed"
    return 1
  fi
  say "made in $(($(date +%s) - start)) s, $(du -sm "$machine" | cut -f 1) MB"
}

# What this machine needs to reach its mirrors, the new one needs as well: name servers,
# proxies and the like, and certificates added by hand.
connect() {
  local file name value
  cp -L /etc/resolv.conf /etc/hosts "$machine/etc/"
  for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
    if [ -f "$file" ] && grep -qiE 'Proxy|CaInfo|Verify-|Check-Valid-Until' "$file"; then
      cp "$file" "$machine/etc/apt/apt.conf.d/"
    fi
  done
  for name in http https; do
    value=$(printenv "${name}_proxy" || true)
    [ -z "$value" ] || printf 'Acquire::%s::Proxy "%s";\n' "$name" "$value" >>"$machine/etc/apt/apt.conf.d/90proxy"
  done
  if [ -d /usr/local/share/ca-certificates ]; then
    cp -RL /usr/local/share/ca-certificates/. "$machine/usr/local/share/ca-certificates/"
  fi
  mount -t proc proc "$machine/proc"
  mkdir -p "$machine/dev/shm" "$machine/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$machine/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$machine/dev/pts" || true # not needed, only usual
  [ ! -x "$machine/usr/sbin/update-ca-certificates" ] || inside update-ca-certificates >/dev/null 2>&1
}

inside() { # COMMAND
  chroot "$machine" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    TERM=dumb "${language[@]}" /bin/bash -c "$1" </dev/null
}
