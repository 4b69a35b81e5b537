import { PROCESSES, type Process } from './processes.js'
import type { Os } from './stacks.js'

/** A shared service on which all applications depend. It runs in prod and serves every environment. */
export interface SharedService {
  app: string
  role: string
  os: Os
  size: number
  listener: Process
}

const {
  named,
  chrony,
  domainServices,
  prometheus,
  logCollector,
  backupServer,
  sshd,
  patchService,
  spooler,
  fileServer,
} = PROCESSES

const service = (app: string, role: string, listener: Process, size: number): SharedService => ({
  app,
  role,
  os: listener.path.startsWith('/') ? 'linux' : 'windows',
  size,
  listener,
})

export const SHARED_SERVICES: readonly SharedService[] = [
  service('dns', 'dns', named, 3),
  service('active-directory', 'domain-controller', domainServices, 3),
  service('ntp', 'ntp', chrony, 2),
  service('monitoring', 'monitoring', prometheus, 2),
  service('backup', 'backup', backupServer, 2),
  service('log-collection', 'log-collector', logCollector, 2),
  service('jump-hosts', 'jump', sshd, 2),
  service('patching', 'patching', patchService, 1),
  service('file-share', 'file-server', fileServer, 2),
  service('print', 'print-server', spooler, 1),
]

/**
 * One type of traffic between hosts and a shared service. With direction `uses`, every host connects to the service;
 * with `serves`, the service connects to every host.
 */
export interface Dependency {
  app: string
  direction: 'uses' | 'serves'
  /** The operating system of the hosts that take part in this traffic. */
  os: Os | 'any'
  proto: number
  port?: number
  /** The last port of a range of dynamic ports that starts at `port`. */
  toPort?: number
  icmp?: { type: number; code: number }
  /**
   * The process on the host: the client of the service or, with direction `serves`, the process to which the service
   * connects.
   */
  host: Process
  /** True if the traffic occurs weekly rather than daily. */
  weekly?: boolean
}

const TCP = 6
const UDP = 17

const P = PROCESSES

export const DEPENDENCIES: readonly Dependency[] = [
  { app: 'dns', direction: 'uses', os: 'linux', proto: UDP, port: 53, host: P.resolver },
  { app: 'dns', direction: 'uses', os: 'windows', proto: UDP, port: 53, host: P.windowsDns },
  { app: 'dns', direction: 'uses', os: 'any', proto: TCP, port: 53, host: P.resolver, weekly: true },
  { app: 'active-directory', direction: 'uses', os: 'windows', proto: TCP, port: 88, host: P.lsass },
  { app: 'active-directory', direction: 'uses', os: 'windows', proto: TCP, port: 389, host: P.lsass },
  { app: 'active-directory', direction: 'uses', os: 'windows', proto: TCP, port: 445, host: P.fileClient },
  { app: 'active-directory', direction: 'uses', os: 'windows', proto: TCP, port: 135, host: P.lsass },
  { app: 'active-directory', direction: 'uses', os: 'windows', proto: TCP, port: 49152, toPort: 65535, host: P.lsass },
  { app: 'active-directory', direction: 'uses', os: 'linux', proto: TCP, port: 636, host: P.sssd },
  { app: 'ntp', direction: 'uses', os: 'linux', proto: UDP, port: 123, host: P.chrony },
  { app: 'ntp', direction: 'uses', os: 'windows', proto: UDP, port: 123, host: P.windowsTime },
  { app: 'log-collection', direction: 'uses', os: 'linux', proto: TCP, port: 6514, host: P.rsyslog },
  { app: 'log-collection', direction: 'uses', os: 'windows', proto: TCP, port: 6514, host: P.eventForwarder },
  { app: 'patching', direction: 'uses', os: 'windows', proto: TCP, port: 8531, host: P.windowsUpdate, weekly: true },
  { app: 'patching', direction: 'uses', os: 'linux', proto: TCP, port: 80, host: P.apt, weekly: true },
  { app: 'file-share', direction: 'uses', os: 'windows', proto: TCP, port: 445, host: P.fileClient },
  { app: 'print', direction: 'uses', os: 'windows', proto: TCP, port: 445, host: P.spooler, weekly: true },
  { app: 'monitoring', direction: 'serves', os: 'linux', proto: TCP, port: 9100, host: P.nodeExporter },
  { app: 'monitoring', direction: 'serves', os: 'windows', proto: TCP, port: 5985, host: P.winrm },
  { app: 'monitoring', direction: 'serves', os: 'any', proto: 1, icmp: { type: 8, code: 0 }, host: P.nodeExporter },
  { app: 'backup', direction: 'serves', os: 'linux', proto: TCP, port: 13724, host: P.backupAgent },
  { app: 'backup', direction: 'serves', os: 'windows', proto: TCP, port: 13724, host: P.windowsBackup },
  { app: 'jump-hosts', direction: 'serves', os: 'linux', proto: TCP, port: 22, host: P.sshd },
  { app: 'jump-hosts', direction: 'serves', os: 'windows', proto: TCP, port: 3389, host: P.remoteDesktop },
]

/** The process of a shared service that connects to the hosts which the service serves. */
export const SERVING_CLIENTS: Readonly<Record<string, Process>> = {
  monitoring: P.prometheus,
  backup: P.backupServer,
  'jump-hosts': P.ssh,
}
