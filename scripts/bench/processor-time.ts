import { readFileSync } from 'node:fs'

/** Of the kernel's `times`: USER_HZ, which Linux has fixed at 100 for programs. */
const TICKS_PER_SECOND = 100

/** Seconds of processor that these processes have used so far, all their threads included. Linux only. Throws Error for one that is gone. */
export function processorSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    // The name, in brackets, may contain spaces; utime and stime are the 14th and 15th field.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return sum + (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }, 0)
}

/** Resident memory of a process at its highest so far: MiB. Linux only. */
export function peakMemory(pid: number): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}
