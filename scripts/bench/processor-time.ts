import { readFileSync } from 'node:fs'

/** The number of the kernel's units of process time (USER_HZ) in a second, which Linux fixes at 100 for programs. */
const TICKS_PER_SECOND = 100

/**
 * Returns the processor time that a process has used so far, in seconds and including all its threads. Works on Linux
 * only. Throws Error if the process is gone.
 */
export function processorSeconds(pid: number): number {
  const { own } = readTicks(pid)
  return own / TICKS_PER_SECOND
}

/** Returns the processor time of a process and its children in seconds, including children that have ended. */
export function familySeconds(parent: number, children: readonly number[]): number {
  const ofChildren = children.reduce((sum, pid) => {
    try {
      return sum + readTicks(pid).own
    } catch {
      // A child that has ended since it was listed is included in the figures of its parent.
      return sum
    }
  }, 0)
  const { own, ended } = readTicks(parent)
  return (own + ended + ofChildren) / TICKS_PER_SECOND
}

function readTicks(pid: number): { own: number; ended: number } {
  // The name, in parentheses, may contain spaces. Fields 14 to 17 are utime and stime of the process, and then of its
  // children that have ended.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  const [user = NaN, system = NaN, endedUser = NaN, endedSystem = NaN] = fields.slice(11, 15).map(Number)
  return { own: user + system, ended: endedUser + endedSystem }
}

/** Returns the peak of a process's resident memory in MiB. Works on Linux only. */
export function peakMemory(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}
