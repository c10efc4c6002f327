# podman build -t service .    (or docker build -f Containerfile -t service .)
# Needs a wheel of Diptych beside it: pip wheel --no-deps -w . diptych
# Run it with the address of the database: podman run -p 8000:8000 -e DIPTYCH_DATABASE=postgresql://… service
FROM python:3.13-slim

WORKDIR /app
COPY diptych-*.whl ./
RUN pip install --no-cache-dir ./diptych-*.whl && rm diptych-*.whl
COPY model.py ./

RUN useradd --system --uid 10001 app
USER app

ENV DIPTYCH_MODEL=model:model \
    DIPTYCH_HOST=0.0.0.0 \
    DIPTYCH_PORT=8000 \
    DIPTYCH_LOG_FORMAT=json
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/ready')"]
CMD ["diptych", "serve"]
