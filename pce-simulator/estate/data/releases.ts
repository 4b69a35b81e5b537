import type { Os } from './stacks.js'

/** The VEN releases, weighted by repetition: a release that is listed twice occurs twice as often. */
export const VEN_RELEASES = ['25.2.10-101', '25.2.10-101', '25.2.20-118', '24.5.0-72'] as const

/**
 * For each operating system, the values of `os_id` and `os_detail` that VENs report. `client` stands for employees'
 * machines.
 */
export const OS_RELEASES: Record<Os | 'client', readonly (readonly [id: string, detail: string])[]> = {
  linux: [
    ['ubuntu-x86_64-jammy', '5.15.0-91-generic #101-Ubuntu SMP (Ubuntu 22.04.4 LTS)'],
    ['ubuntu-x86_64-noble', '6.8.0-31-generic #31-Ubuntu SMP (Ubuntu 24.04 LTS)'],
    ['redhat-x86_64-9.0', '5.14.0-362.el9.x86_64 (Red Hat Enterprise Linux release 9.3)'],
    ['redhat-x86_64-8.0', '4.18.0-513.el8.x86_64 (Red Hat Enterprise Linux release 8.9)'],
  ],
  windows: [
    ['win-x86_64-server', '10.0.20348 Windows Server 2022 Standard'],
    ['win-x86_64-server', '10.0.17763 Windows Server 2019 Datacenter'],
  ],
  client: [
    ['win-x86_64-client', '10.0.22631 Windows 11 Enterprise'],
    ['win-x86_64-client', '10.0.19045 Windows 10 Enterprise'],
  ],
}
