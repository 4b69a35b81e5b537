/** A process on a workload, in the form in which its VEN reports it. */
export interface Process {
  path: string
  user: string
  /** The name of the Windows service to which the process belongs, if any; undefined on other operating systems. */
  service?: string
}

const linux = (path: string, user: string): Process => ({ path, user })
const windows = (path: string, user: string, service?: string): Process => ({
  path,
  user,
  ...(service === undefined ? {} : { service }),
})

const SYSTEM = 'NT AUTHORITY\\SYSTEM'
const NETWORK = 'NT AUTHORITY\\NETWORK SERVICE'
const LOCAL = 'NT AUTHORITY\\LOCAL SERVICE'
const SYSTEM32 = 'C:\\Windows\\System32'

export const PROCESSES = {
  nginx: linux('/usr/sbin/nginx', 'nginx'),
  apache: linux('/usr/sbin/apache2', 'www-data'),
  php: linux('/usr/sbin/php-fpm8.2', 'www-data'),
  java: linux('/usr/lib/jvm/java-21-openjdk-amd64/bin/java', 'tomcat'),
  node: linux('/usr/bin/node', 'node'),
  python: linux('/usr/bin/python3.11', 'svc-worker'),
  postgres: linux('/usr/lib/postgresql/16/bin/postgres', 'postgres'),
  mysql: linux('/usr/sbin/mysqld', 'mysql'),
  mongo: linux('/usr/bin/mongod', 'mongodb'),
  redis: linux('/usr/bin/redis-server', 'redis'),
  kafka: linux('/usr/lib/jvm/java-17-openjdk-amd64/bin/java', 'kafka'),
  oracle: linux('/u01/app/oracle/product/19.0.0/dbhome_1/bin/tnslsnr', 'oracle'),
  named: linux('/usr/sbin/named', 'bind'),
  chrony: linux('/usr/sbin/chronyd', 'chrony'),
  resolver: linux('/usr/lib/systemd/systemd-resolved', 'systemd-resolve'),
  sssd: linux('/usr/libexec/sssd/sssd_be', 'root'),
  sshd: linux('/usr/sbin/sshd', 'root'),
  ssh: linux('/usr/bin/ssh', 'ops'),
  prometheus: linux('/usr/local/bin/prometheus', 'prometheus'),
  nodeExporter: linux('/usr/local/bin/node_exporter', 'prometheus'),
  rsyslog: linux('/usr/sbin/rsyslogd', 'syslog'),
  logCollector: linux('/opt/logcollector/bin/collector', 'logcollector'),
  backupServer: linux('/usr/openv/netbackup/bin/bprd', 'root'),
  backupAgent: linux('/usr/openv/netbackup/bin/bpcd', 'root'),
  apt: linux('/usr/lib/apt/methods/http', '_apt'),
  curl: linux('/usr/bin/curl', 'svc-deploy'),
  git: linux('/usr/bin/git', 'ci'),
  scanner: linux('/opt/scanner/sbin/scand', 'root'),
  iis: windows(`${SYSTEM32}\\inetsrv\\w3wp.exe`, 'IIS APPPOOL\\DefaultAppPool', 'W3SVC'),
  dotnet: windows('C:\\Program Files\\dotnet\\dotnet.exe', NETWORK),
  mssql: windows(
    'C:\\Program Files\\Microsoft SQL Server\\MSSQL16.MSSQLSERVER\\MSSQL\\Binn\\sqlservr.exe',
    'NT SERVICE\\MSSQLSERVER',
    'MSSQLSERVER',
  ),
  lsass: windows(`${SYSTEM32}\\lsass.exe`, SYSTEM, 'Netlogon'),
  domainServices: windows(`${SYSTEM32}\\lsass.exe`, SYSTEM, 'NTDS'),
  windowsDns: windows(`${SYSTEM32}\\svchost.exe`, NETWORK, 'Dnscache'),
  windowsTime: windows(`${SYSTEM32}\\svchost.exe`, LOCAL, 'W32Time'),
  windowsUpdate: windows(`${SYSTEM32}\\svchost.exe`, SYSTEM, 'wuauserv'),
  remoteDesktop: windows(`${SYSTEM32}\\svchost.exe`, NETWORK, 'TermService'),
  remoteDesktopClient: windows(`${SYSTEM32}\\mstsc.exe`, 'CORP\\ops'),
  winrm: windows(`${SYSTEM32}\\svchost.exe`, NETWORK, 'WinRM'),
  spooler: windows(`${SYSTEM32}\\spoolsv.exe`, SYSTEM, 'Spooler'),
  fileServer: windows('System', SYSTEM, 'LanmanServer'),
  fileClient: windows('System', SYSTEM, 'LanmanWorkstation'),
  eventForwarder: windows('C:\\Program Files\\LogCollector\\agent.exe', SYSTEM, 'LogCollectorAgent'),
  windowsBackup: windows('C:\\Program Files\\Veritas\\NetBackup\\bin\\bpcd.exe', SYSTEM, 'NetBackup Client Service'),
  patchService: windows('C:\\Program Files\\Update Services\\WebServices\\WsusService.exe', NETWORK, 'WsusService'),
} as const satisfies Record<string, Process>

/** The programs that employees run on their laptops. These processes run as the user of the laptop. */
export const LAPTOP_PROGRAMS = [
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe',
  'C:\\Program Files\\Mozilla Firefox\\firefox.exe',
  'C:\\Program Files\\Microsoft Office\\root\\Office16\\OUTLOOK.EXE',
  'C:\\Program Files\\Microsoft Office\\root\\Office16\\EXCEL.EXE',
  'C:\\Program Files\\WindowsApps\\MSTeams_24.1\\ms-teams.exe',
  `${SYSTEM32}\\WindowsPowerShell\\v1.0\\powershell.exe`,
] as const
