# Forgehand in a container; compose.yaml starts it. To start it by hand, with the namespaces that local sandboxes need:
#   docker run --init --read-only --tmpfs /tmp:exec,mode=1777 --cap-drop ALL --security-opt no-new-privileges \
#     --security-opt seccomp=unconfined --security-opt systempaths=unconfined \
#     -v forgehand:/data -p 127.0.0.1:8080:8080 --env-file forgehand.env forgehand
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE app.yml ./
COPY .ci/image .ci/build.lock .ci/
COPY bot bot
COPY sandbox sandbox
RUN .ci/image /opt/forgehand

FROM python:3.12-slim-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap git ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 forgehand \
 && install -d -o forgehand -g forgehand -m 0700 /data
COPY --from=build /opt/forgehand /opt/forgehand
USER forgehand
ENV PATH=/opt/forgehand/bin:$PATH FORGEHAND_DATA_DIR=/data FORGEHAND_HOST=0.0.0.0 FORGEHAND_PORT=8080
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=3s --start-period=30s \
  CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$FORGEHAND_PORT/healthz', timeout=2)"
STOPSIGNAL SIGTERM
ENTRYPOINT ["forgehand"]
CMD ["serve"]
