import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The name that the Dockerfile gives to its base image. */
export const BASE = 'docker.io/library/node:24-slim'

/**
 * Writes a program `podman` into the folder that keeps everything below this folder, and starts containers as this
 * machine allows it. Returns its path. `podman` is the path of the installed program; `driver` says how layers are
 * stored. Containers get RUN_OPTIONS of the environment in addition to their options.
 */
export function writeEngine(folder: string, podman: string, driver: 'overlay' | 'vfs'): string {
  const bin = join(folder, 'bin')
  const path = join(bin, 'podman')
  const settings = join(folder, 'containers.conf')
  mkdirSync(bin, { recursive: true })
  // No process may have more open files than the one that starts it, and podman's own default is more.
  const files = execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim()
  writeFileSync(
    settings,
    `[containers]
default_ulimits = ["nofile=${files}:${files}", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "runc"
`,
  )
  const places = ['root', 'runroot', 'tmpdir'].map((name) => `--${name} '${join(folder, name)}'`).join(' ')
  writeFileSync(
    path,
    `#!/bin/sh
export CONTAINERS_CONF='${settings}' TMPDIR='${folder}'
verb=$1
shift
[ "$verb" != run ] || set -- $RUN_OPTIONS "$@"
exec '${podman}' ${places} --storage-driver ${driver} "$verb" "$@"
`,
    { mode: 0o755 },
  )
  return path
}
