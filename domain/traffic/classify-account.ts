import { quote } from '../text/escape-text.js'
import type { Account } from './parse-account.js'

/** Who uses an account: programs that run unattended (`service`), or a person at a keyboard (`interactive`). */
export const ACCOUNT_TYPES = ['service', 'interactive', 'unknown'] as const
export type AccountType = (typeof ACCOUNT_TYPES)[number]

export interface AccountClass {
  type: AccountType
  /** True if the account name has a form that only such accounts can have. Otherwise, the type is a guess. */
  isCertain: boolean
  /** The reason, as a phrase. */
  why: string
}

/** What traffic rows show about how an account is used, besides its name. */
export interface AccountUse {
  /** The file names of the programs that ran under the account. */
  programs: readonly string[]
  /** The Windows services that ran under the account. */
  windowsServices: readonly string[]
  /** True if the VEN that reported the account runs on an endpoint, such as a laptop. */
  onEndpoint: boolean
}

/** Realms that belong to Windows itself, in several languages. Nobody can log in with an account in such a realm. */
const BUILT_IN_REALMS = new Set([
  ...['nt authority', 'nt service', 'nt virtual machine', 'iis apppool', 'window manager', 'font driver host'],
  ...['nt-autorität', 'autorite nt', 'autoridad nt', 'autorità nt', 'autoridade nt'],
])
/** Built-in Windows accounts, as they are written when the realm is left out. */
const BUILT_IN_NAMES = new Set(['system', 'localsystem', 'local service', 'network service'])
/** Security identifiers of built-in accounts, of services and of application pools (P113). */
const BUILT_IN_SIDS = ['s-1-5-18', 's-1-5-19', 's-1-5-20']
const SERVICE_SIDS = ['s-1-5-80-', 's-1-5-82-', 's-1-5-83-']

/** Accounts that Linux distributions and database packages create for their daemons. */
const DAEMONS = new Set(
  (
    'daemon bin sys sync nobody adm lp mail news uucp www-data www nginx apache httpd tomcat jetty node php mysql mariadb postgres ' +
    'postgresql oracle mongodb mongod redis memcached kafka zookeeper rabbitmq elasticsearch kibana logstash opensearch cassandra ' +
    'influxdb grafana prometheus node_exporter zabbix nagios icinga telegraf splunk bind named unbound dnsmasq chrony ntp ' +
    'systemd-network systemd-resolve systemd-timesync messagebus dbus polkitd sshd sssd syslog rsyslog postfix exim dovecot ' +
    'haproxy varnish squid docker containerd kube etcd consul vault nomad jenkins gitlab git ftp vsftpd rpc rpcuser statd ' +
    'puppet chef ansible salt avahi cups snmp nfsnobody ceph minio'
  ).split(' '),
)

/** Words that occur in names of service accounts, separated by dashes, underscores or dots. */
const SERVICE_WORDS = new Set(
  'svc srv service services sa gmsa msa app daemon bot robot batch job jobs cron task sched scheduler backup monitoring scan scanner deploy build ci agent api sql'.split(
    ' ',
  ),
)

/** Desktop programs, which show that a person is using the account. */
const DESKTOP_PROGRAMS = new Set(
  (
    'chrome.exe msedge.exe firefox.exe firefox iexplore.exe safari opera.exe brave.exe outlook.exe excel.exe winword.exe powerpnt.exe ' +
    'onenote.exe ms-teams.exe teams.exe slack.exe zoom.exe explorer.exe mstsc.exe putty.exe code.exe thunderbird'
  ).split(' '),
)

/**
 * Decides whether an account belongs to a service or to a person. Only name forms that operating systems reserve are
 * certain. Names, programs and realms are merely evidence, and the result then says that it is a guess. If the evidence
 * is contradictory, the type is `unknown`, and the reason states both sides.
 */
export function classifyAccount(account: Account, use: AccountUse): AccountClass {
  const certain = reservedForm(account)
  if (certain !== null) return { type: 'service', isCertain: true, why: certain }
  const service = namedLikeService(account)
  const program = use.programs.find((one) => DESKTOP_PROGRAMS.has(one.toLowerCase()))
  const person = program === undefined ? null : `works with ${quote(program)}`
  if (service !== null && person !== null) return guess('unknown', `${service}, but ${person}`)
  if (service !== null) return guess('service', service)
  if (person !== null) return guess('interactive', person)
  const [windowsService] = use.windowsServices
  // Some Windows services run as the logged-in user, so a Windows service is weaker evidence than a desktop program.
  if (windowsService !== undefined) return guess('service', `runs the Windows service ${quote(windowsService)}`)
  if (account.name === 'administrator') return guess('interactive', 'the administrator, as whom people log in')
  if (use.onEndpoint) return guess('interactive', 'seen on an endpoint')
  return account.realm !== null
    ? guess('interactive', 'an account of a directory without any mark of a service')
    : guess('unknown', 'neither name nor programs tell')
}

const guess = (type: AccountType, why: string): AccountClass => ({ type, isCertain: false, why })

function reservedForm({ name, realm }: Account): string | null {
  if (realm !== null && BUILT_IN_REALMS.has(realm)) return `${realm} is a realm of Windows itself`
  if (name.endsWith('$')) return 'ends in $: a computer or a managed service account'
  if (realm === null && BUILT_IN_NAMES.has(name)) return 'built into Windows'
  if (BUILT_IN_SIDS.includes(name) || SERVICE_SIDS.some((start) => name.startsWith(start)))
    return 'the identifier of a service or built-in account of Windows'
  return null
}

function namedLikeService({ name }: Account): string | null {
  if (name === 'root') return 'root, mostly daemons, though a person may work as root'
  if (DAEMONS.has(name)) return 'the usual name of a daemon'
  if (name.startsWith('_')) return 'begins with _, as system accounts do'
  const word = name.split(/[-_.]/u).find((part) => SERVICE_WORDS.has(part))
  if (word !== undefined) return `named like a service (${word})`
  return name.startsWith('svc') || name.endsWith('svc') ? 'named like a service (svc)' : null
}
