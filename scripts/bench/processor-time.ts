import { readFileSync } from 'node:fs'

/** Of the kernel's `times`: USER_HZ, which Linux has fixed at 100 for programs. */
const TICKS_PER_SECOND = 100

/** Seconds of processor that a process has used so far, all its threads included. Linux only. Throws Error for one that is gone. */
export function processorSeconds(pid: number): number {
  const { own } = readTicks(pid)
  return own / TICKS_PER_SECOND
}

/** The same of a process with its children, those that have ended included. */
export function familySeconds(parent: number, children: readonly number[]): number {
  const ofChildren = children.reduce((sum, pid) => {
    try {
      return sum + readTicks(pid).own
    } catch {
      // It has ended since it was listed, and its parent counts it.
      return sum
    }
  }, 0)
  const { own, ended } = readTicks(parent)
  return (own + ended + ofChildren) / TICKS_PER_SECOND
}

function readTicks(pid: number): { own: number; ended: number } {
  // The name, in brackets, may contain spaces. Fields 14 to 17: utime, stime, and the same of children that have ended.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  const [user = NaN, system = NaN, endedUser = NaN, endedSystem = NaN] = fields.slice(11, 15).map(Number)
  return { own: user + system, ended: endedUser + endedSystem }
}

/** Resident memory of a process at its highest so far: MiB. Linux only. */
export function peakMemory(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}
