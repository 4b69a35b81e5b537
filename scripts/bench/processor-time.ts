import { readFileSync } from 'node:fs'

/** The number of the kernel's units of process time (USER_HZ) in a second, which Linux fixes at 100 for programs. */
const TICKS_PER_SECOND = 100

/**
 * Returns the processor time that a process with all its threads has used so far, in seconds. Works only on Linux.
 * Throws Error if the process has ended.
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
      // If a child has ended since it was listed, the figures of its parent include it.
      return sum
    }
  }, 0)
  const { own, ended } = readTicks(parent)
  return (own + ended + ofChildren) / TICKS_PER_SECOND
}

function readTicks(pid: number): { own: number; ended: number } {
  // The name, in parentheses, may contain spaces, so the text after it is split. Fields 14 to 17 are utime and stime:
  // of the process, and then of its children that have ended.
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
