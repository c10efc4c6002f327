/**
 * The data provider and the live provider for refine, with optimistic locking.
 *
 *     const { dataProvider, liveProvider } = diptych('https://api.example.org', { token: () => session.accessToken })
 *     <Refine dataProvider={dataProvider} liveProvider={liveProvider} options={{ liveMode: 'auto' }}>…
 */
import { connect, difference, Refused } from 'diptych-rest'

/** @typedef {import('@refinedev/core').CrudFilter} CrudFilter */

const ALL = 10_000
const TYPES = /** @type {const} */ ({ CREATED: 'created', UPDATED: 'updated', LEFT: 'deleted', DELETED: 'deleted' })
/** @type {Record<string, string>} The operators of refine that the service names otherwise. */
const NAMES = {
  ...{ eqs: 'eq', nes: 'ne', ina: 'hasAny', contains: 'icontains', containss: 'contains', startswith: 'istartsWith' },
  ...{ startswiths: 'startsWith', endswith: 'iendsWith', endswiths: 'endsWith' },
}
const NEGATED = /^n(in|ina|between|(contains|startswith|endswith)s?)$/

/** A filter of refine as one of the service. @param {CrudFilter} filter @returns {Record<string, any>} */
function condition(filter) {
  if (!('field' in filter)) return { [filter.operator]: filter.value.map(condition) }
  const { field, operator, value } = filter
  if (NEGATED.test(operator)) return { not: condition({ field, operator: /** @type {any} */ (operator.slice(1)), value }) }
  /** @type {Record<string, any>} */
  let test = { [NAMES[operator] ?? operator]: value }
  if (operator === 'null' || operator === 'nnull') test = { isNull: operator === 'null' }
  if (operator === 'between') test = { gte: value[0], lte: value[1] }
  return field.split('.').reduceRight((inner, name) => ({ [name]: inner }), test)
}

/** What refine takes of a request; its forms show the messages of fields. @param {Promise<any>} request @param {any} [shown] */
const dataOf = async (request, shown) =>
  request.then((data) => ({ data: shown ?? data }), (error) => {
    throw error instanceof Refused ? Object.assign(new Error(error.message), { statusCode: error.status, errors: error.fields }) : error
  })

/** What is to be read of a row: `meta: { select: '*,author(name)' }`. @param {Record<string, any>} [meta] */
const chosen = (meta) => ({ fields: typeof meta?.select === 'string' ? meta.select : undefined })

/**
 * @param {string} url @param {import('diptych-rest').Options} [options]
 * @returns {{ dataProvider: Required<Omit<import('@refinedev/core').DataProvider, 'custom'>>, liveProvider: import('@refinedev/core').LiveProvider }}
 */
export function diptych(url, options) {
  const rest = connect(url, options)
  /** @type {Map<string, Record<string, any>>} The rows that forms were filled with: refine does not pass the values before a change. */
  const known = new Map()
  /** @param {string} resource @param {Promise<Record<string, any>>} request */
  const kept = async (resource, request) => {
    const result = await dataOf(request)
    known.set(`${resource}/${result.data.id}`, result.data)
    return result
  }

  return {
    dataProvider: {
      getApiUrl: () => rest.url,
      getList: async ({ resource, pagination, sorters, filters, meta }) => {
        const { currentPage = 1, pageSize = 10, mode = 'server' } = pagination ?? {}
        const paged = mode === 'server' ? { first: pageSize, offset: (currentPage - 1) * pageSize } : { first: ALL }
        const sort = sorters?.map(({ field, order }) => (order === 'desc' ? `-${field}` : field)).join(',') || undefined
        const where = filters?.length ? { and: filters.map(condition) } : {}
        const { data } = await dataOf(rest.list(resource, { ...paged, sort, where, ...chosen(meta) }))
        return { data: data.rows, total: data.total }
      },
      getOne: ({ resource, id, meta }) => kept(resource, rest.get(resource, id, chosen(meta))),
      getMany: ({ resource, ids, meta }) => dataOf(rest.many(resource, ids, chosen(meta))),
      create: ({ resource, variables, meta }) => dataOf(rest.create(resource, /** @type {any} */ (variables), chosen(meta))),
      createMany: ({ resource, variables }) => dataOf(rest.createMany(resource, /** @type {any[]} */ (variables))),
      update: ({ resource, id, variables, meta }) => {
        const before = known.get(`${resource}/${id}`)
        const { version = before?.version, ...values } = /** @type {Record<string, any>} */ (variables)
        const patch = before?.version === version ? difference(before ?? {}, values) : values
        return kept(resource, rest.update(resource, id, patch, { version, ...chosen(meta) }))
      },
      updateMany: ({ resource, ids, variables }) => dataOf(rest.each('PATCH', resource, ids, /** @type {any} */ (variables))),
      deleteOne: ({ resource, id, meta }) => dataOf(rest.remove(resource, id, { version: meta?.version }), { id }),
      deleteMany: ({ resource, ids }) => dataOf(rest.each('DELETE', resource, ids), ids.map((id) => ({ id }))),
    },
    liveProvider: {
      subscribe: ({ channel, types, params, callback }) => {
        const ids = params?.ids ?? (params?.id === undefined ? undefined : [params.id])
        const wanted = ids && new Set(ids.map(String))
        return rest.follow(params?.resource ?? channel.replace('resources/', ''), (changes) => {
          const seen = changes?.filter(({ rowId }) => wanted?.has(String(rowId)) ?? true)
          for (const type of seen ? new Set(seen.map(({ kind }) => TYPES[kind])) : [/** @type {const} */ ('*')]) {
            const concerned = seen?.filter(({ kind }) => TYPES[kind] === type).map(({ rowId }) => rowId)
            const asked = type === '*' || types.includes('*') || types.includes(type)
            if (asked) callback({ channel, date: new Date(), type, payload: concerned ? { ids: concerned } : {} })
          }
        })
      },
      unsubscribe: (stop) => stop(),
    },
  }
}
