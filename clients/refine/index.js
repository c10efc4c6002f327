/**
 * The data provider and the live provider for refine, with optimistic locking.
 *
 *     const { dataProvider, liveProvider } = diptych('https://api.example.org', { token: () => session.accessToken })
 *     <Refine dataProvider={dataProvider} liveProvider={liveProvider} options={{ liveMode: 'auto' }}>…
 */
import { connect, difference, Refused } from 'diptych-rest'

/** @typedef {import('@refinedev/core').BaseKey} BaseKey */
/** @typedef {import('@refinedev/core').CrudFilter} CrudFilter */

const TYPES = /** @type {const} */ ({ CREATED: 'created', UPDATED: 'updated', LEFT: 'deleted', DELETED: 'deleted' })
const ALL = 10_000
const KEPT = 1_000
/** @type {Record<string, (value: any) => Record<string, any>>} The operators of refine as those of the service. */
const OPERATORS = {
  ...Object.fromEntries(['eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in', 'contains'].map((name) => [name, (value) => ({ [name]: value })])),
  eqs: (value) => ({ eq: value }),
  nes: (value) => ({ ne: value }),
  containss: (value) => ({ contains: value }),
  startswith: (value) => ({ startsWith: value }),
  startswiths: (value) => ({ startsWith: value }),
  null: () => ({ isNull: true }),
  nnull: () => ({ isNull: false }),
  between: ([least, most]) => ({ gte: least, lte: most }),
}

/** A filter of refine as one of the service. @param {CrudFilter} filter @returns {Record<string, any>} */
function condition(filter) {
  if ('field' in filter) {
    const { field, operator, value } = filter
    const negated = !(operator in OPERATORS) && operator.startsWith('n') && operator.slice(1) in OPERATORS
    const test = OPERATORS[negated ? operator.slice(1) : operator]
    if (!test) throw refusal(`The service has no operator like ${operator}.`, 400)
    const found = field.split('.').reduceRight((inner, name) => ({ [name]: inner }), test(value))
    return negated ? { not: found } : found
  }
  return { [filter.operator]: filter.value.map(condition) }
}

/** @param {string} message @param {number} statusCode @param {Record<string, string>} [errors] */
const refusal = (message, statusCode, errors) => Object.assign(new Error(message), { statusCode, errors })

/** The error that refine understands: messages of fields are shown by its forms. @param {unknown} error @returns {never} */
function raise(error) {
  throw error instanceof Refused ? refusal(error.message, error.status, error.fields) : error
}

/**
 * @param {string} url @param {import('diptych-rest').Options} [options]
 * @returns {{ dataProvider: Required<Omit<import('@refinedev/core').DataProvider, 'custom'>>, liveProvider: import('@refinedev/core').LiveProvider }}
 */
export function diptych(url, options) {
  const rest = connect(url, options)
  /** @type {Map<string, Record<string, any>>} The rows that forms were filled with, by resource and id. */
  const read = new Map()

  /** @param {string} resource @param {Record<string, any>} row */
  function keep(resource, row) {
    read.delete(`${resource}/${row.id}`)
    read.set(`${resource}/${row.id}`, row)
    for (const oldest of read.keys()) if (read.size > KEPT) read.delete(oldest)
    return { data: /** @type {any} */ (row) }
  }

  return {
    dataProvider: {
      getApiUrl: () => rest.url,
      getList: async ({ resource, pagination, sorters, filters, meta }) => {
        const { currentPage = 1, pageSize = 10, mode = 'server' } = pagination ?? {}
        const paged = mode === 'server' ? { first: pageSize, offset: (currentPage - 1) * pageSize } : { first: ALL }
        const sort = sorters?.map(({ field, order }) => (order === 'desc' ? `-${field}` : field)).join(',') || undefined
        const where = filters?.length ? { and: filters.map(condition) } : {}
        const { rows, total } = await rest.list(resource, { ...paged, sort, where, ...chosen(meta) }).catch(raise)
        return { data: /** @type {any[]} */ (rows), total }
      },
      getOne: async ({ resource, id, meta }) => keep(resource, await rest.get(resource, id, chosen(meta)).catch(raise)),
      getMany: async ({ resource, ids, meta }) => {
        return { data: /** @type {any[]} */ (await rest.many(resource, ids, chosen(meta)).catch(raise)) }
      },
      create: async ({ resource, variables, meta }) => {
        return keep(resource, await rest.create(resource, /** @type {any} */ (variables), chosen(meta)).catch(raise))
      },
      createMany: async ({ resource, variables }) => {
        return { data: /** @type {any[]} */ (await rest.createMany(resource, /** @type {any[]} */ (variables)).catch(raise)) }
      },
      update: async ({ resource, id, variables, meta }) => {
        const known = read.get(`${resource}/${id}`)
        const { version = known?.version, ...values } = /** @type {Record<string, any>} */ (variables)
        const patch = known?.version === version ? difference(known ?? {}, values) : values
        return keep(resource, await rest.update(resource, id, patch, { version, ...chosen(meta) }).catch(raise))
      },
      updateMany: async ({ resource, ids, variables }) => {
        return { data: /** @type {any[]} */ (await rest.each('PATCH', resource, ids, /** @type {any} */ (variables)).catch(raise)) }
      },
      deleteOne: async ({ resource, id, meta }) => {
        await rest.remove(resource, id, { version: meta?.version }).catch(raise)
        return { data: /** @type {any} */ ({ id }) }
      },
      deleteMany: async ({ resource, ids }) => {
        await rest.each('DELETE', resource, ids).catch(raise)
        return { data: /** @type {any[]} */ (ids.map((id) => ({ id }))) }
      },
    },
    liveProvider: {
      subscribe: ({ channel, types, params, callback }) => {
        const resource = params?.resource ?? channel.replace('resources/', '')
        const ids = params?.ids ?? (params?.id === undefined ? undefined : [params.id])
        const wanted = ids && new Set(ids.map(String))
        return rest.follow(resource, (changes) => {
          const event = { channel, date: new Date() }
          if (changes === null) callback({ ...event, type: '*', payload: {} })
          for (const type of new Set((changes ?? []).map((change) => TYPES[change.kind]))) {
            const rows = (changes ?? []).filter((change) => TYPES[change.kind] === type).map((change) => change.rowId)
            const seen = wanted ? rows.filter((id) => wanted.has(String(id))) : rows
            const asked = types.includes('*') || types.includes(type)
            if (asked && seen.length) callback({ ...event, type, payload: { ids: seen } })
          }
        })
      },
      unsubscribe: (stop) => stop(),
    },
  }
}

/** What is to be read of a row: `meta: { select: '*,author(name)' }`. @param {Record<string, any>} [meta] */
const chosen = (meta) => ({ fields: typeof meta?.select === 'string' ? meta.select : undefined })
