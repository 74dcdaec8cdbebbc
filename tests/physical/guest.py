# SPDX-License-Identifier: Apache-2.0
"""The machine that the tests of physical SSDs run on, and how to get programs onto it.

It is scripts/kernel_guest.py's guest with an IOMMU, an NVMe controller behind it, and a device
whose only purpose is its BAR: memory that the controller reaches from device to device, as it would
a GPU's. Scripts begin with PRELUDE, which has words for who drives the controller.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import kernel_guest  # noqa: E402
from kernel_guest import GuestError  # noqa: E402

SSD = "0000:00:04.0"
PEER = "0000:00:05.0"
QTEST_SSD = "0000:00:06.0"  # what was written to it without a guest
STRIPE = ("0000:00:07.0", "0000:00:08.0")
PEER_MIB = 64
HUGE_PAGES = 64  # of 2 MiB

# What is asked of the kernel: the IOMMU is off without it.
KERNEL_OPTIONS = "intel_iommu=on"
MACHINE = "q35,kernel-irqchip=split"

PRELUDE = rf"""
ssd={SSD}
peer=/sys/bus/pci/devices/{PEER}/resource2
disk=/dev/nvme0n1
mnt=/mnt
pci=/sys/bus/pci/devices/$ssd
load_modules physical || exit 1
echo {HUGE_PAGES} > /proc/sys/vm/nr_hugepages
echo 1 > /sys/bus/pci/devices/{PEER}/enable
driver() {{ basename "$(readlink $pci/driver)"; }}
# The disk that the kernel has of the function $1, once it appears.
disk_of() {{
  for i in $(seq 100); do
    for found in /sys/bus/pci/devices/$1/nvme/nvme*/nvme*n1; do
      [ -e $found ] && [ -e /dev/${{found##*/}} ] && echo /dev/${{found##*/}} && return
    done
    sleep 0.1
  done
  return 1
}}
# Whether the file appears within ten seconds.
appears() {{
  for i in $(seq 100); do [ -e $1 ] && return; sleep 0.1; done
  return 1
}}
# The function $1.
bind_to_vfio() {{
  local function=/sys/bus/pci/devices/$1
  echo vfio-pci > $function/driver_override
  [ -e $function/driver ] && echo $1 > $function/driver/unbind
  echo $1 > /sys/bus/pci/drivers_probe
  [ "$(basename "$(readlink $function/driver)")" = vfio-pci ]
}}
to_vfio() {{ bind_to_vfio $ssd; }}
to_nvme() {{
  echo > $pci/driver_override
  [ -e $pci/driver ] && echo $ssd > $pci/driver/unbind
  echo $ssd > /sys/bus/pci/drivers_probe
  [ "$(driver)" = nvme ] && appears $disk
}}
# Runs a command; its name and whether it succeeded become a line of /o/results.
check() {{
  local name=$1 code=0
  shift
  "$@" > /tmp/said 2>&1 || code=$?
  if [ $code = 0 ]; then
    echo "PASS $name" >> /o/results
  else
    echo "FAIL $name: ended with $code: $(tail -n 5 /tmp/said | tr '\n' ' ')" >> /o/results
  fi
  echo "--- $name: $code after $(cut -d' ' -f1 /proc/uptime) s"
  cat /tmp/said
  return $code
}}
"""


def devices(images):
    """QEMU's arguments for SSDs, {PCI address: (image, bytes of an LBA)}, and the rest of the
    machine."""
    arguments = ["-device", "intel-iommu,intremap=on",
                 "-object", f"memory-backend-ram,id=peer,size={PEER_MIB}M,share=on",
                 "-device", f"ivshmem-plain,memdev=peer,addr={slot(PEER)}"]
    for number, (address, (image, lba)) in enumerate(images.items()):
        arguments += [
            "-drive", f"if=none,id=ssd{number},file={image},format=raw,cache=unsafe,discard=unmap,"
            "detect-zeroes=unmap",
            "-device", f"nvme,serial=gofs-ssd{number},drive=ssd{number},addr={slot(address)},"
            f"max_ioqpairs=16,mdts=7,logical_block_size={lba},physical_block_size={lba}"]
    return arguments


def slot(address):
    return "0x" + address.split(":")[2].split(".")[0]


def with_libraries(program, name):
    """{path in the guest: bytes} of a program and all that it is linked with."""
    program = pathlib.Path(program)
    if not program.exists():
        raise GuestError(f"{program} is missing; scripts/build.sh builds it")
    files = {name: program.read_bytes()}
    listing = subprocess.run(["ldd", str(program)], stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                             check=False).stdout
    missing = re.findall(r"(\S+) => not found", listing)
    if missing:
        raise GuestError(f"{program} needs " + ", ".join(missing))
    # "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)" or, the loader, "/lib64/ld... (0x...)"
    for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listing, re.MULTILINE):
        files[path] = pathlib.Path(path).read_bytes()
    return files


def boot(kernel, script, images, files, out, timeout_s):
    """Boots the machine once, with SSDs as devices() has them; the seconds that it ran."""
    return kernel_guest.boot(kernel, PRELUDE + script, [], files, out, timeout_s=timeout_s,
                             machine=MACHINE, devices=devices(images),
                             kernel_options=KERNEL_OPTIONS)
