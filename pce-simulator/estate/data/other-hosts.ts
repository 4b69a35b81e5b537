/** Hosts that belong to no application: employees' laptops, appliances without a VEN, and servers without labels. */

const list = (text: string): readonly string[] => text.split(' ').filter((word) => word !== '')

export const GIVEN_NAMES = list(
  'Anna Ben Clara David Elif Felix Greta Hugo Ines Jonas Karim Lena Marek Nina Oskar Paula Quentin Rosa Sven Tara Umar Vera Wim Zoe',
)

export const FAMILY_NAMES = list(
  'Albrecht Bakker Costa Dubois Eriksen Fischer Garcia Hansen Ivanov Jansen Kovacs Lindqvist Moreau Novak Okafor Petrov Rossi Schmidt Tanaka',
)

/**
 * The beginnings of the names of managed servers that nobody has labelled completely: some have one label, most have
 * none.
 */
export const STRAY_HOSTS = list('srv vm-test old-app WIN-7F3K tmp-migration legacy-ftp')

export interface Appliance {
  host: string
  role: string
  /** The TCP port on which the appliance listens. */
  port: number
  osId: string | null
  /** The applications whose production hosts connect to the appliance. */
  callers: readonly string[]
  /** The applications in production to whose entry tier the appliance connects. */
  calls: readonly string[]
}

const appliance = (
  host: string,
  role: string,
  port: number,
  callers: string,
  calls = '',
  osId: string | null = null,
): Appliance => ({
  host,
  role,
  port,
  osId,
  callers: list(callers),
  calls: list(calls),
})

/** The appliances, which have no VEN. The PCE knows them because an administrator has entered them. */
export const APPLIANCES: readonly Appliance[] = [
  appliance('load-balancer', 'proxy', 443, 'monitoring', 'payments web-shop ordering customer-portal'),
  appliance('mainframe-zos', 'db', 446, 'ledger erp billing', 'ledger'),
  appliance('san-controller', 'storage', 3260, 'data-warehouse backup'),
  appliance('core-switch', 'network', 22, 'jump-hosts monitoring'),
  appliance('vcenter', 'hypervisor', 443, 'jump-hosts backup'),
  appliance('oracle-rac', 'db', 1521, 'erp crm-analytics pay', '', 'oracle-x86_64-8.0'),
  appliance('printer', 'printer', 9100, 'print'),
  appliance('badge-reader', 'iot', 4070, 'hr-portal', 'hr-portal'),
  appliance('plc-gateway', 'iot', 502, 'warehouse'),
]
